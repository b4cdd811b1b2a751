"""The evaluation on generated traffic, which needs no recorded data, stays above its floors."""

from pathlib import Path
from typing import Any

import pytest

from detector.config.root import Settings
from detector.errors import InputError
from detector.evaluate import evaluate
from detector.sample.dataset import LENGTHS, write_dataset
from detector.sample.language import load_language
from detector.sample.traffic import TrafficSettings

SEED = 7

SETTINGS = TrafficSettings(requests=1500, duration_s=1500.0, history_requests=1500)
"""Half of the evaluation set at the same density: enough for the figures, in half of the time."""

PER_LENGTH = 6

MAX_CLEAN = 30
"""Measured with several seeds: 11 to 12. The traffic follows Python's docstrings, so it varies."""

MIN_RAW = 300
"""Measured: 474 to 497. Below this the traffic would be too easy to prove anything."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("generated")
    write_dataset(SEED, folder, language=load_language(), settings=SETTINGS, per_length=PER_LENGTH)
    return evaluate(str(folder), Settings())


def test_a_folder_without_traffic_is_told_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        evaluate(str(tmp_path), Settings())
    assert caught.value.where == str(tmp_path)
    assert "requests.jsonl.zst" in caught.value.what
    assert "make .demo/eval/manifest.json" in caught.value.hint


def rows(measured: dict[str, Any], name: str, by: str) -> dict[str, dict[str, Any]]:
    return {row[by]: row for row in measured[name]}


def test_clean_traffic_is_hard_and_raises_few_findings(measured: dict[str, Any]) -> None:
    assert measured["requests"] == SETTINGS.requests
    assert measured["raw_10gram_flagged"] >= MIN_RAW
    assert measured["clean_findings"] <= MAX_CLEAN
    assert measured["clean_findings_high"] <= 1


def test_planted_bleeds_are_found_with_their_source(measured: dict[str, Any]) -> None:
    assert measured["recall_all"] >= 0.95
    assert measured["recall_16plus"] >= 0.97
    assert measured["recall_16plus_high"] >= 0.85
    assert measured["right_source"] >= 0.99


def test_every_length_is_planted_and_long_ones_are_all_sure(measured: dict[str, Any]) -> None:
    by_length = rows(measured, "recall_by_length", "length")
    assert set(by_length) == {str(length) for length in LENGTHS} | {"full"}
    for length in ("32", "48", "64", "128", "256", "full"):
        assert by_length[length]["found_high"] == by_length[length]["bleeds"]


def test_a_bleed_that_repeats_is_not_taken_for_common(measured: dict[str, Any]) -> None:
    """Two victims of one session can be among them: the second has the content in its prompt."""
    assert measured["recall_repeat"] >= 0.9


def test_without_history_nothing_is_sure(measured: dict[str, Any]) -> None:
    assert rows(measured, "clean_variants", "variant")["no_history"]["high"] == 0


@pytest.mark.parametrize("variant", ["density_x12_compressed", "density_x12_folded"])
def test_dense_traffic_raises_few_sure_findings(measured: dict[str, Any], variant: str) -> None:
    assert rows(measured, "clean_variants", "variant")[variant]["high"] <= 3
