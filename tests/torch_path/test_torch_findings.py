"""The findings of generated traffic are the same with torch."""

from pathlib import Path

import pytest

from detector.sample.dataset import write_dataset
from detector.sample.language import load_language
from detector.sample.traffic import TrafficSettings
from ingest.key_file import new_secret
from tests.unit.backend_findings import told_with

TRAFFIC = TrafficSettings(requests=1500, duration_s=1500.0, history_requests=1500)


@pytest.mark.parametrize("sampling", ["every", "winnow"])
def test_the_same_findings_with_torch(tmp_path: Path, sampling: str) -> None:
    write_dataset(7, tmp_path, language=load_language(), settings=TRAFFIC, per_length=6)
    new_secret(tmp_path / "key")
    ours = told_with("numba", tmp_path, tmp_path / "key", sampling=sampling)
    assert told_with("torch", tmp_path, tmp_path / "key", sampling=sampling) == ours
    assert len(ours) > 50
