"""The findings on recorded traffic are the same whoever makes the shingles."""

from pathlib import Path

import msgspec
import zstandard

from ingest.key_file import new_secret
from tests.reference.traffic import read_jsonl
from tests.unit.backend_findings import told_with

SLICE_S = 900.0


def test_the_same_findings_with_numba_and_numpy(recorded_traffic: Path, tmp_path: Path) -> None:
    for name in ("history", "planted"):
        rows = read_jsonl(recorded_traffic / "dev" / f"{name}.jsonl.zst")
        kept = [msgspec.json.encode(row) for row in rows if row["ts"] < SLICE_S]
        data = zstandard.ZstdCompressor().compress(b"\n".join(kept))
        (tmp_path / f"{name}.jsonl.zst").write_bytes(data)
    new_secret(tmp_path / "key")
    ours = told_with("numba", tmp_path, tmp_path / "key", sampling="every")
    assert told_with("numpy", tmp_path, tmp_path / "key", sampling="every") == ours
    assert len(ours) > 50
