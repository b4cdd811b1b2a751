"""`bleedwatch bench` measures all that it names, whatever the scale, and tells how far it is."""

import json

import pytest

from detector import bench
from detector.benchmarks import sharing
from detector.cli.app import app
from detector.reading import OnProgress

PEERS = {"datasketch MinHashLSH, xxh32", "dict of 10-grams"}
SHARING = {
    "core, sharing off",
    "core, sharing on",
    "telling first showings",
    "owning a range",
    "merging what is shared",
}

ROW_BYTES = 16
"""A posting is a key and a value, 8 bytes each."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "LIVE_POSTINGS", 20_000)
    monkeypatch.setattr(bench, "WINDOW_RESPONSES", 20)
    monkeypatch.setattr(bench, "PHRASES", 100)
    monkeypatch.setattr(bench, "ROUNDS", 3)
    monkeypatch.setattr(bench, "DETECTOR_RESPONSES", 10)
    monkeypatch.setattr(bench, "PEER_RESPONSES", 10)
    monkeypatch.setattr(bench, "READ_RESPONSES", 10)
    monkeypatch.setattr(sharing, "ROUNDS", 2)
    monkeypatch.setattr(sharing, "RESPONSES", 4)


def test_the_core_its_peers_sharing_reading_and_memory_are_measured() -> None:
    shares: list[float] = []
    rows = {str(row["measured"]): row for row in bench.run_bench(on_progress=_noted(shares))}
    assert rows.keys() == {
        "bleedwatch core", *PEERS, *SHARING, "replay of a JSONL file", "index, per live posting",
    }  # fmt: skip
    assert rows["bleedwatch core"]["ratio"] == 1
    for name in PEERS | SHARING:
        assert 0 < float(rows[name]["least"]) <= float(rows[name]["median"])
        assert float(rows[name]["median"]) <= float(rows[name]["most"])
    assert rows["replay of a JSONL file"]["unit"] == "tokens/s"
    assert float(rows["index, per live posting"]["median"]) >= ROW_BYTES
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] < 1


def test_the_command_writes_the_same_rows(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        app(["bench", "-o", "json"])
    assert ended.value.code in (0, None)
    rows = json.loads(capsys.readouterr().out)
    assert {row["measured"] for row in rows} >= PEERS | SHARING


def _noted(shares: list[float]) -> OnProgress:
    return lambda share, _label: shares.append(share)
