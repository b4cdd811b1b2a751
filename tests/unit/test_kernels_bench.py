"""The bench of the kernels times every contestant and names the peers that are not installed."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from detector.benchmarks import __main__ as program
from detector.benchmarks import end_to_end, kernels, peers, records
from detector.benchmarks.end_to_end import Scale
from detector.benchmarks.harness import LEAST_ROUNDS
from detector.benchmarks.kernels import Report

TINY = Scale(winnowed=150, every=150, peers=150, rounds=1, seconds=0.0)
OPTIONAL = ("datasketch", "rensa", "FastSketchLSH", "polars", "duckdb")


@pytest.fixture(scope="module", autouse=True)
def _small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "LENGTHS", (1_000,))
        patch.setattr(kernels, "RESIDENT", (1_000_000,))
        patch.setattr(kernels, "SETTLING", 0.1)
        for name in ("SKETCH_SECONDS", "FINGERPRINT_SECONDS", "INDEX_SECONDS"):
            patch.setattr(kernels, name, 0.0)
        for name in ("SHORT", "LONG"):
            patch.setattr(end_to_end, name, TINY)
        patch.setattr(end_to_end, "OUR_RESPONSES", 5)
        patch.setattr(end_to_end, "PEER_RESPONSES", 2)
        patch.setattr(records, "SECONDS", 0.0)
        patch.setattr(records, "LENGTHS", (1_000,))
        yield


@pytest.fixture(scope="module")
def report(_small: None) -> Report:
    """Measure once for all tests."""
    return kernels.run_kernels()


def test_every_table_is_measured_in_rounds_that_count(report: Report) -> None:
    timed = [row for row in report.rows if "rounds" in row]
    assert {str(row["group"]).partition(",")[0] for row in timed} == {
        "MinHash", "ids to fingerprints", "window index", "end to end",
    }  # fmt: skip
    for row in timed:
        assert row["rounds"] in (TINY.rounds, LEAST_ROUNDS)
        assert 0 < float(str(row["ns_p10"])) <= float(str(row["ns_p90"]))


def test_what_is_held_to_a_target_has_its_ratio(report: Report) -> None:
    assert {
        "minhash_vs_datasketch_bulk",
        "ids_to_fingerprints_vs_python_loop",
        "ids_to_fingerprints_vs_numpy",
        "index_vs_dict",
        "index_vs_dict_1m",
        "end_to_end_vs_datasketch_xxh32",
    } <= report.ratios.keys()


def test_a_peer_is_timed_or_told_to_be_missing(report: Report) -> None:
    missing = {row["contestant"] for row in report.rows if row["unit"] == "not installed"}
    assert missing == {name for name in OPTIONAL if not peers.installed(name)}


@pytest.mark.parametrize("name", ["records", "endtoend"])
def test_the_table_and_the_file_say_the_same(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "bench.json"
    monkeypatch.setattr(sys, "argv", ["bench", name, "--json", str(file)])
    program.main()
    written = json.loads(file.read_text())
    table = capsys.readouterr().out.splitlines()
    assert table[0].startswith("| group | contestant | unit |")
    assert len([line for line in table if line.startswith("| ")]) == 1 + len(written["rows"])
    for ratio in written["ratios"]:
        assert any(line.startswith(f"{ratio}: ") for line in table)


def test_an_unknown_bench_is_refused_with_those_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "speed"])
    with pytest.raises(SystemExit, match="2"):
        program.main()
    assert "kernels" in capsys.readouterr().err
