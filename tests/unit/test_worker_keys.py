"""The secret of a running worker: a rotation is taken over, a broken file is told and survived."""

import logging
from pathlib import Path

import pytest

from detector.streaming.worker_keys import WorkerKeys
from ingest.key_file import load_secret, new_secret
from ingest.key_rotation import SealingSettings

REREAD_S = 20


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    new_secret(tmp_path / "key")
    return tmp_path / "key"


def test_a_broken_file_is_told_once_and_a_rotation_taken_over(
    key_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    keys = WorkerKeys(str(key_file), SealingSettings(), clock=lambda: now[0])
    before = keys.current.key_id
    content = key_file.read_text()
    key_file.write_text(content[:30])
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            now[0] += REREAD_S
            assert keys.ring().key_id == before
            assert keys.unreadable()
    assert len(caplog.records) == 1
    assert str(key_file) in caplog.text
    assert content[:30] not in caplog.text
    key_file.unlink()
    new_secret(key_file)
    now[0] += REREAD_S
    assert (
        keys.ring().key_id == load_secret(key_file).keys().key_id == keys.current.key_id != before
    )
    assert not keys.unreadable()
    assert before in keys.ring().key_ids
