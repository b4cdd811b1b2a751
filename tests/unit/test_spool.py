"""The spool keeps order, survives what a crash leaves, and counts exactly what it gives up."""

import resource
import subprocess
import sys
import tempfile
from collections import deque
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from detector.errors import BrokerError, InputError
from ingest.spool_segment import START, frame
from tests.unit.spools import TOPIC, filled, message, number_of, opened, read


def segments(folder: Path) -> list[Path]:
    """Return the files of a spool, the oldest first."""
    return sorted(folder.glob("*.spool"))


def test_messages_come_out_as_they_went_in(tmp_path: Path) -> None:
    spool = opened(tmp_path, sync=True)
    given = [message(n, size=100 + 7_000 * n, topic=f"topic-{n % 2}") for n in range(40)]
    for one in given:
        spool.append(one)
    spool.sync()
    assert [spool.next() for _ in given] == given
    assert spool.next() is None
    assert spool.is_drained


def test_a_restart_goes_on_behind_the_last_acknowledged(tmp_path: Path) -> None:
    spool = filled(tmp_path, range(100), max_bytes=2**18)
    assert read(spool) == list(range(100))
    for _ in range(37):
        spool.acknowledge()
    spool.close()
    again = opened(tmp_path, max_bytes=2**18)
    assert again.counts.messages == 63
    assert read(again) == list(range(37, 100))


def test_nothing_is_left_on_disk_once_all_is_acknowledged(tmp_path: Path) -> None:
    spool = filled(tmp_path, range(100), max_bytes=2**18)
    assert len(segments(tmp_path)) > 2
    for _ in read(spool):
        spool.acknowledge()
    assert segments(tmp_path) == []
    assert (spool.counts.messages, spool.counts.bytes) == (0, 0)
    spool.append(message(100))
    assert read(spool) == [100]


def test_what_was_not_acknowledged_is_read_again(tmp_path: Path) -> None:
    spool = filled(tmp_path, range(10))
    read(spool)
    spool.acknowledge()
    spool.rewind()
    assert read(spool) == list(range(1, 10))


def test_the_oldest_go_first_and_are_counted(tmp_path: Path) -> None:
    spool = filled(tmp_path, range(1_000), max_bytes=2**17)
    counts = spool.counts
    left = read(spool)
    assert counts.dropped == {TOPIC: 1_000 - len(left)}
    assert left == list(range(1_000 - len(left), 1_000))
    assert counts.bytes <= 2**17
    assert counts.bytes > 2**17 * 3 / 4
    assert counts.dropped_times == (0, left[0])
    assert sum(path.stat().st_size for path in segments(tmp_path)) == counts.bytes


def test_what_is_given_up_under_way_counts_only_if_it_does_not_arrive(tmp_path: Path) -> None:
    spool = filled(tmp_path, range(20), max_bytes=2**16)
    for _ in range(20):
        spool.next()
    for number in range(20, 1_000):
        spool.append(message(number))
    for _ in range(4):
        spool.acknowledge()  # arrived although its segment is gone
    before = spool.counts.dropped[TOPIC]
    spool.rewind()
    left = read(spool)
    assert spool.counts.dropped[TOPIC] == before + 16
    assert spool.counts.dropped[TOPIC] + len(left) + 4 == 1_000


def test_a_full_spool_that_keeps_everything_refuses(tmp_path: Path) -> None:
    spool = opened(tmp_path, max_bytes=2**16, when_full="refuse")
    kept = 0
    while spool.counts.bytes + len(frame(message(kept))) + START <= 2**16:
        spool.append(message(kept))
        kept += 1
    with pytest.raises(BrokerError, match="the spool is full"):
        spool.append(message(kept))
    left = read(spool)
    assert left == list(range(kept))
    assert spool.counts.refused == 1
    assert not spool.counts.dropped


@pytest.mark.parametrize("left_over", [1, 7, 8, 9, 500, 1_000])
def test_a_half_written_message_is_cut_off_and_counted(tmp_path: Path, left_over: int) -> None:
    filled(tmp_path, range(5)).close()
    (path,) = segments(tmp_path)
    whole = path.read_bytes()
    size = (len(whole) - START) // 5
    path.write_bytes(whole[: START + 4 * size + left_over])
    spool = opened(tmp_path)
    assert spool.counts.cut_bytes == left_over
    spool.append(message(5))
    assert read(spool) == [0, 1, 2, 3, 5]


@pytest.mark.parametrize("tail", [b"\0" * 4_096, b"\xff" * 100, b"\1\0\0\0" + b"\0" * 8])
def test_what_a_power_cut_leaves_behind_is_no_message(tmp_path: Path, tail: bytes) -> None:
    filled(tmp_path, range(5)).close()
    (path,) = segments(tmp_path)
    path.write_bytes(path.read_bytes() + tail)
    spool = opened(tmp_path)
    assert spool.counts.cut_bytes == len(tail)
    assert read(spool) == list(range(5))


def test_a_flipped_bit_ends_its_segment_only(tmp_path: Path) -> None:
    filled(tmp_path, range(100), max_bytes=2**18).close()
    first, *others = segments(tmp_path)
    content = bytearray(first.read_bytes())
    content[START + 2_500] ^= 1
    first.write_bytes(content)
    spool = opened(tmp_path, max_bytes=2**18)
    found = read(spool)
    assert found[:2] == [0, 1]
    assert found[2:] == list(range(found[2], 100))
    assert found[2] > 2
    assert others
    lost = range(2, found[2])
    assert spool.counts.cut_bytes == sum(len(frame(message(number))) for number in lost)


def test_a_file_without_a_header_holds_nothing(tmp_path: Path) -> None:
    tmp_path.joinpath("0000000000000001.spool").write_bytes(b"BWSP")
    tmp_path.joinpath("0000000000000002.spool").write_bytes(b"")
    spool = opened(tmp_path)
    assert spool.counts.cut_bytes == 4
    spool.append(message(1))
    assert read(spool) == [1]


def test_two_processes_do_not_share_a_spool(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    with pytest.raises(InputError, match="another process has this spool"):
        opened(tmp_path)
    spool.close()
    opened(tmp_path).close()


def test_a_folder_that_is_a_file_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    path.touch()
    with pytest.raises(InputError, match="cannot be read or written"):
        opened(path)


_FULL_DISK = """
import resource, sys
from pathlib import Path
from detector.errors import BrokerError
from tests.unit.spools import message, opened, read
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
spool = opened(Path(sys.argv[1]), max_bytes=2**20)
refused = 0
for number in range(100):
    try:
        spool.append(message(number))
    except BrokerError as error:
        assert "file too large" in str(error), error
        refused += 1
spool.sync()
print(len(read(spool)), refused, spool.counts.refused, sum(spool.counts.dropped.values()))
"""


def test_a_disk_that_takes_no_more_refuses_and_ends_nothing(tmp_path: Path) -> None:
    """A limit on the size of files: the system gives an error in the middle of a write."""
    assert resource.RLIMIT_FSIZE
    said = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, str(tmp_path)],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    kept, refused, counted, dropped = map(int, said.split())
    assert kept + refused == 100
    assert kept > 30
    assert refused == counted > 0
    assert dropped == 0


class _Model(RuleBasedStateMachine):
    """A spool beside a list: the same messages, whatever happens in whatever order."""

    def __init__(self) -> None:
        super().__init__()
        self._home = tempfile.TemporaryDirectory()
        self.folder = Path(self._home.name)
        self.spool = opened(self.folder)
        self.waiting: deque[int] = deque()
        self.read = 0
        self.number = 0

    @rule(count=st.integers(1, 5), size=st.sampled_from([8, 500, 9_000]))
    def append(self, count: int, size: int) -> None:
        for _ in range(count):
            self.spool.append(message(self.number, size=size))
            self.waiting.append(self.number)
            self.number += 1
        self.spool.sync()

    @rule()
    def next(self) -> None:
        given = self.spool.next()
        if self.read == len(self.waiting):
            assert given is None
        else:
            assert given is not None
            assert number_of(given) == self.waiting[self.read]
            self.read += 1

    @precondition(lambda self: self.read)
    @rule()
    def acknowledge(self) -> None:
        self.spool.acknowledge()
        self.waiting.popleft()
        self.read -= 1

    @rule()
    def rewind(self) -> None:
        self.spool.rewind()
        self.read = 0

    @rule()
    def restart(self) -> None:
        self.spool.close()
        self.spool = opened(self.folder)
        self.read = 0

    @invariant()
    def counts_are_right(self) -> None:
        assert self.spool.counts.messages == len(self.waiting)
        assert self.spool.is_drained == (self.read == len(self.waiting))

    def teardown(self) -> None:
        self.spool.close()
        self._home.cleanup()


TestModel = _Model.TestCase
TestModel.settings = hypothesis_settings(max_examples=40, stateful_step_count=30, deadline=None)
