"""What the disk did not keep is never said to be spooled, and what cannot fit costs nothing."""

import os
from pathlib import Path

import pytest

from detector.errors import BrokerError
from ingest.spool import Spool
from tests.unit.spools import filled, message, opened, read

MAX_BYTES = 2**16
IN_A_SEGMENT = 7
"""Messages of 1,000 bytes in a segment of an eighth of MAX_BYTES."""


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return which calls of fdatasync fail, counted from 0; the system tells of each once."""
    numbers: list[int] = []
    calls = iter(range(1_000))
    real = os.fdatasync

    def fdatasync(descriptor: int) -> None:
        if next(calls) in numbers:
            raise OSError(5, "Input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    return numbers


def appended(spool: Spool, numbers: range) -> None:
    for number in numbers:
        spool.append(message(number))


def test_a_segment_that_could_not_be_sealed_is_told_of_by_the_next_sync(
    tmp_path: Path, failing: list[int]
) -> None:
    spool = opened(tmp_path, sync=True, max_bytes=MAX_BYTES)
    failing.append(0)
    appended(spool, range(IN_A_SEGMENT + 3))
    with pytest.raises(BrokerError, match="input/output error"):
        spool.sync()
    assert (spool.counts.spooled, spool.counts.refused) == (0, IN_A_SEGMENT + 3)
    assert read(spool) == []
    assert not list(tmp_path.glob("*.spool"))
    spool.sync()  # told once: nothing has come since
    appended(spool, range(5))
    spool.sync()
    assert spool.counts.spooled == 5
    assert read(spool) == list(range(5))


def test_what_was_safe_before_a_failed_seal_stays(tmp_path: Path, failing: list[int]) -> None:
    spool = opened(tmp_path, sync=True, max_bytes=MAX_BYTES)
    failing.append(1)
    appended(spool, range(4))
    spool.sync()
    assert read(spool) == list(range(4))
    appended(spool, range(4, IN_A_SEGMENT + 3))
    with pytest.raises(BrokerError):
        spool.sync()
    assert spool.counts.messages == spool.counts.spooled == 4
    appended(spool, range(4, 20))
    spool.sync()
    assert read(spool) == list(range(4, 20))
    spool.close()
    assert read(opened(tmp_path, max_bytes=MAX_BYTES)) == list(range(20))


def test_a_sync_that_fails_takes_back_what_it_was_for(tmp_path: Path, failing: list[int]) -> None:
    spool = opened(tmp_path, sync=True, max_bytes=MAX_BYTES)
    failing.append(1)
    appended(spool, range(2))
    spool.sync()
    appended(spool, range(2, 5))
    with pytest.raises(BrokerError):
        spool.sync()
    assert (spool.counts.spooled, spool.counts.refused) == (2, 3)
    assert read(spool) == [0, 1]


@pytest.mark.parametrize("when_full", ["drop_oldest", "refuse"])
def test_a_message_above_the_spool_is_refused_and_nothing_goes(
    tmp_path: Path, when_full: str
) -> None:
    spool = filled(tmp_path, range(20), max_bytes=MAX_BYTES, when_full=when_full)
    with pytest.raises(BrokerError, match="the spool is full"):
        spool.append(message(99, size=MAX_BYTES))
    assert (spool.counts.messages, spool.counts.refused) == (20, 1)
    assert not spool.counts.dropped
    assert read(spool) == list(range(20))


def test_a_message_as_large_as_the_spool_takes_all_of_it(tmp_path: Path) -> None:
    spool = filled(tmp_path, range(20), max_bytes=MAX_BYTES)
    spool.append(message(99, size=MAX_BYTES - 1_000))
    assert read(spool) == [99]
