"""A line of a file is whole or not there, whatever became of the one before."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from exporters.outputs.contract import Delivered
from exporters.outputs.lines import LinesOutput
from exporters.outputs.settings import StdoutSettings
from tests.alerts.kit import NOW_MS, notification

ROOT = Path(__file__).parents[2]

FULL = """
import resource, sys
from exporters.outputs.lines import LinesOutput
from exporters.outputs.settings import StdoutSettings
from tests.alerts.kit import NOW_MS, notification

output = LinesOutput(StdoutSettings(kind="stdout", name="file", path=sys.argv[1]))
for room in (resource.RLIM_INFINITY, int(sys.argv[2]), resource.RLIM_INFINITY):
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    print(type(output.send(notification(), at_ms=NOW_MS)).__name__)
"""
"""Three lines, of which the second finds less room than it needs: in a process of its own."""


def written(path: Path) -> LinesOutput:
    output = LinesOutput(StdoutSettings(kind="stdout", name="file", path=str(path)))
    assert isinstance(output.send(notification(), at_ms=NOW_MS), Delivered)
    return output


def test_a_line_that_does_not_fit_leaves_nothing_behind(tmp_path: Path) -> None:
    written(tmp_path / "one")
    path, room = tmp_path / "alerts", (tmp_path / "one").stat().st_size + 100
    said = subprocess.run(
        [sys.executable, "-c", FULL, str(path), str(room)],
        capture_output=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "."},
        text=True,
    )
    assert said.stdout.split() == ["Delivered", "Retry", "Delivered"]
    assert path.read_bytes() == (tmp_path / "one").read_bytes() * 2


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "alerts"
    output = written(path)
    path.write_bytes(path.read_bytes() + b'{"id": "ntf-')
    for _ in range(2):
        output.send(notification(), at_ms=NOW_MS)
    first, cut, *more = path.read_bytes().splitlines()
    assert cut == b'{"id": "ntf-'
    assert more == [first, first]
    assert msgspec.json.decode(first)


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    """It cannot be looked at, truncated or synced."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    written(path)
    assert msgspec.json.decode(os.read(reader, 100_000))
    os.close(reader)
