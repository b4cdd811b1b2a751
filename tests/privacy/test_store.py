"""The store and the alerts hold names and numbers, never a tenant's text, ids, hashes or a key."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.privacy.sandbox import Sandbox


def test_what_run_all_keeps(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    box = Sandbox(tmp_path)
    store, alerts = box.work / "store.db", box.work / "alerts.jsonl"
    output = f'outputs=[{{"kind": "stdout", "name": "file", "path": "{alerts}"}}]'
    chosen = (f"store.url=sqlite:///{store}", output, "detection.commonness.learning_ms=0")
    options = [word for one in chosen for word in ("--set", one)]
    options += ["--config", str(box.config)]
    box.call(capfdbinary, "run", "all", box.jsonl, "--incidents", *options, code=1)
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("SELECT count(*) FROM findings").fetchone()[0] > 0
        assert connection.execute("SELECT count(*) FROM outbox").fetchone()[0] > 0
    assert not box.sweep()
