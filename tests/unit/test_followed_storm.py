"""A log that is rotated and packed all the time by another thread: no line of it is lost."""

import re
import threading
import time
from pathlib import Path
from random import Random

import pytest

from ingest.coverage import Coverage
from ingest.tail.followed import FollowedLog
from tests.unit.growing_log import SALT, GrowingLog, pack

ROTATIONS = 60
WRITES = 12
"""Between two rotations on average."""

PAUSE_S = 0.004
PIECE_BYTES = 4096
LAST = b"the end\n"
NUMBERED = re.compile(rb"line (\d{8}) [0-9a-f]*")


class Storm:
    """Writes numbered lines in pieces that end anywhere, and rotates in between."""

    def __init__(self, path: Path, chance: Random) -> None:
        self.written = 0
        self._log = GrowingLog(path)
        self._chance = chance
        self._thread = threading.Thread(target=self._blow, name="storm", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wait until it is over."""
        self._thread.join()
        self._log.close()

    def _blow(self) -> None:
        rotations, content = 0, b""
        while rotations < ROTATIONS:
            while len(content) < 2 * PIECE_BYTES:
                content += self._line()
            size = self._chance.randrange(1, PIECE_BYTES)
            self._log.write(content[:size])
            content = content[size:]
            time.sleep(PAUSE_S)
            if not self._chance.randrange(WRITES):
                rotations += 1
                self._rotate()
        self._log.write(content + LAST)

    def _line(self) -> bytes:
        self.written += 1
        filled = self._chance.randbytes(self._chance.randrange(150)).hex()
        return f"line {self.written:08} {filled}\n".encode()

    def _rotate(self) -> None:
        if self._chance.random() < 0.5:
            self._log.rotate()
        else:
            self._log.copy_truncate()
        older = self._log.path.with_name(f"{self._log.path.name}.2")
        if older.exists():
            pack(older)


@pytest.mark.parametrize("seed", range(4))
def test_no_line_is_lost(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    coverage = Coverage()
    log = tmp_path / "server.log"
    log.touch()
    follower = FollowedLog(log, salt=SALT, coverage=coverage, rotate_wait_s=0.05)
    storm = Storm(log, Random(seed))
    numbers: set[int] = set()
    is_over = False
    while not is_over:
        lines = [line for _, line in follower.poll(time.monotonic())]
        numbers.update(int(found[1]) for line in lines if (found := NUMBERED.fullmatch(line)))
        is_over = LAST.rstrip(b"\n") in lines
        if chance.random() < 0.3:
            follower.release(follower.next_at)
        if chance.random() < 0.05:
            time.sleep(chance.random() * 0.08)  # others need the machine
    storm.end()
    follower.close()
    assert numbers == set(range(1, storm.written + 1))
    assert not coverage.broken_by_reason
