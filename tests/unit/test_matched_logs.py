"""What a pattern stands for while a log is rotated: its old file is never a log of its own."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from detector.sketch.token_table import TokenTable
from ingest.coverage import Coverage
from ingest.door import Door
from ingest.sidecar_input import SidecarInput
from ingest.sidecar_inputs import LOOK_S, SidecarInputs
from ingest.sidecar_reader import GrowingReader
from ingest.sidecar_settings import SidecarSettings
from ingest.sources.field_map import FieldMap
from ingest.tail.checkpoint import LogMark
from ingest.tail.source import LineSource
from tests.unit.growing_log import SALT, WAIT_S, GrowingLog, wide


def made(log: LineSource, coverage: Coverage, _before: LogMark | None) -> SidecarInput:
    settings = SidecarSettings()
    now = datetime(2026, 11, 29, tzinfo=UTC)
    reader = GrowingReader(
        settings, FieldMap(), engine="engine-0", coverage=coverage, now=lambda: now
    )
    return SidecarInput(log, reader, coverage=coverage, door=no_door)


def no_door(_table: TokenTable, _coverage: Coverage) -> Door:
    raise AssertionError("no record is made here")


@pytest.mark.parametrize("pattern", ["server.log*", "*"])
def test_a_look_between_rename_and_reopening_doubles_nothing(tmp_path: Path, pattern: str) -> None:
    log = GrowingLog(tmp_path / "server.log")
    inputs = SidecarInputs(
        SidecarSettings(files=(str(tmp_path / pattern),)), made, salt=SALT, before={}
    )
    log.write(wide(b"one"))
    inputs.look(0.0)
    log.rename()
    inputs.look(LOOK_S)  # the writer has not made its new file yet
    log.write(wide(b"two"))
    log.reopen()
    log.write(wide(b"three"))
    inputs.look(2 * LOOK_S)
    log.rotate()
    inputs.look(3 * LOOK_S)
    assert [one.log.name for one in inputs] == [str(log.path)]
    turns = [3 * LOOK_S + turn * WAIT_S for turn in range(20)]
    lines = [content for now_s in turns for one in inputs for _, content in one.log.poll(now_s)]
    assert [content.rstrip() for content in lines] == [b"one", b"two", b"three"]
    inputs.close()
    log.close()
