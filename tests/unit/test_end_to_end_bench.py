"""The bench end to end proves what it times: our runs are found, the peers' are not."""

import pytest

from detector.benchmarks import end_to_end
from detector.benchmarks.end_to_end import EVERY, GUARANTEED, OURS, Scale, run_end_to_end
from detector.benchmarks.end_to_end_peers import DATASKETCH_XXH32

TINY = Scale(winnowed=150, every=150, peers=150, rounds=1, seconds=0.0)


def test_planted_runs_are_found_by_runs_and_not_by_whole_documents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(end_to_end, "OUR_RESPONSES", 5)
    monkeypatch.setattr(end_to_end, "PEER_RESPONSES", 2)
    measured = run_end_to_end(TINY)
    guaranteed = [n for n in end_to_end.PLANTED_LENGTHS if n >= GUARANTEED]
    assert guaranteed
    assert all(share == 1 for share in measured.recall[EVERY].values())
    assert all(measured.recall[OURS][length] == 1 for length in guaranteed)
    assert all(measured.recall[DATASKETCH_XXH32][length] == 0 for length in guaranteed)
    assert measured.ratios()["end_to_end_vs_datasketch_xxh32"] > 0
