"""A sidecar says why nothing can come of a log, and at its end where what was read has got to."""

from pathlib import Path

import msgspec
import pytest

from detector.cli.run_sidecar import how_it_ended
from ingest.spool_counts import SpoolCounts
from tests.e2e.traffic import pairs, write_vllm
from tests.unit.sidecars import Station


def reasons(station: Station) -> list[str]:
    assert station.running is not None
    station.turns(2)
    return list(station.running.look().reasons)


def test_a_log_without_lines_says_what_it_lacks(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    station = Station(tmp_path, str(log))
    station.start()
    assert reasons(station) == [f"{log}: is not there yet"]
    log.write_bytes(b"")
    assert reasons(station) == [f"{log}: nothing has been written to it yet"]
    log.write_bytes(b"a banner\n")
    assert reasons(station) == [f"{log}: the format is not recognised yet"]
    station.crash()


def test_a_log_that_was_read_before_a_restart_may_be_silent(tmp_path: Path) -> None:
    log = write_vllm(tmp_path / "server.log", pairs(2))
    station = Station(tmp_path, str(log))
    station.start()
    assert reasons(station) == []
    station.turns(3)
    station.stop()
    station.start()
    assert reasons(station) == []
    station.crash()


@pytest.mark.parametrize(
    ("unsafe_bytes", "waiting", "said"),
    [
        (0, None, "all is acknowledged, "),
        (0, 0, "all is acknowledged, "),
        (0, 3, "3 messages wait in the spool for the next start, "),
        (9, 3, "not all is acknowledged, "),
    ],
)
def test_the_last_line_claims_no_more_than_is_so(
    tmp_path: Path, unsafe_bytes: int, waiting: int | None, said: str
) -> None:
    station = Station(tmp_path, str(write_vllm(tmp_path / "server.log", pairs(1))))
    health = station.start().look()
    station.crash()
    spool = None if waiting is None else SpoolCounts(waiting, 0, 0, 0, {}, 0, None, 0, 0)
    ended = msgspec.structs.replace(health, unsafe_bytes=unsafe_bytes, spool=spool, logs=())
    assert how_it_ended(ended).startswith(said)
