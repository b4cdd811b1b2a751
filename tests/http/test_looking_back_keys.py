"""Looking back needs the key that records were hashed under: without one nothing is asked."""

from pathlib import Path

import msgspec
import pytest

from detector.api.looking_back import looking_back
from detector.config.root import Settings
from detector.errors import KeyFileError
from detector.trace.look_back import RULES
from exporters.store.look_backs import not_looked_back
from ingest.broker import Reader
from tests.http.kit import Served
from tests.unit.test_trace_stream import SINK, contradiction


def unused() -> Reader:
    raise AssertionError("nothing may be read")


def test_without_a_key_file_findings_wait_for_one(api: Served) -> None:
    api.record(msgspec.structs.replace(contradiction(), id="c1", detected_at_ms=SINK.ended_at_ms))
    with looking_back(Settings(key_file=None), api.database, open_reader=unused) as turn:
        turn()
        turn()
    with api.database.read() as connection:
        waiting = not_looked_back(connection, RULES, since_ms=0, limit=9)
    assert [one.id for one in waiting] == ["c1"]


def test_a_key_file_that_is_not_there_is_told_at_once(api: Served, tmp_path: Path) -> None:
    settings = Settings(key_file=str(tmp_path / "absent"))
    with (
        pytest.raises(KeyFileError, match="no such key file"),
        looking_back(settings, api.database, open_reader=unused),
    ):
        pass
