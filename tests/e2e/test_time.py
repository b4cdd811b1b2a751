"""Wrong clocks, gaps, long answers and repeated ids: what is found depends on none of them."""

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.e2e.program import Capture, replayed
from tests.e2e.traffic import pairs, row, write_config

PAIRS = 5
ANSWERS = range(1, 2 * PAIRS, 2)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path / "config.yaml", detection={"commonness": {"learning_ms": 0}})


def sinks(
    capture: Capture, config: Path, rows: Iterable[dict[str, Any]]
) -> tuple[set[str], dict[str, Any]]:
    """Return the requests that received something, and the whole document."""
    path = config.parent / "log.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    document = replayed(capture, config, path)
    return {one["sink"]["request_id"] for one in document["findings"]}, document


def moved(one: dict[str, Any], by_s: float) -> dict[str, Any]:
    return {**one, "ts": one["ts"] + by_s, "ts_end": one["ts_end"] + by_s}


@pytest.mark.parametrize("jump_s", [-1e10, -86_400.0, -60.0, 600.0, 86_400.0, 3.2e9, 2e11])
def test_a_wrong_clock_hides_no_other_request(config: Path, capsys: Capture, jump_s: float) -> None:
    traffic = [row(one) for one in pairs(PAIRS)]
    (stray,) = [row(one) for one in pairs(1, seed=99)[:1]]
    for at in (0, 5, 10):
        rows = [*traffic[:at], moved(stray, jump_s), *traffic[at:]]
        told, _ = sinks(capsys, config, rows)
        assert told == {traffic[answer]["request_id"] for answer in ANSWERS}


@pytest.mark.parametrize("gap_s", [-200_000, -5_000, 400, 1_000, 2_000, 5_000, 200_000])
def test_nothing_is_lost_around_a_gap_or_a_clock_that_was_set(
    config: Path, capsys: Capture, gap_s: float
) -> None:
    traffic = [row(one) for one in pairs(2 * PAIRS)]
    half = 2 * PAIRS
    rows = [*traffic[:half], *(moved(one, gap_s) for one in traffic[half:])]
    told, document = sinks(capsys, config, rows)
    assert told == {one["request_id"] for one in traffic[1::2]}
    assert document["requests"] == len(traffic)


@pytest.mark.parametrize("lasts_s", [1, 60, 250, 590])
def test_a_long_answer_keeps_its_whole_window(
    config: Path, capsys: Capture, lasts_s: float
) -> None:
    """The source started just inside the window before the answer, which then takes its time."""
    asked, answered = (row(one) for one in pairs(1))
    answered["ts"] = asked["ts"] + 290
    answered["ts_end"] = answered["ts"] + lasts_s
    others = [row(one) for one in pairs(300, seed=9)[::2]]
    assert others[-1]["ts"] > 1_400
    rows = sorted([asked, answered, *others], key=lambda one: float(one["ts_end"]))
    told, _ = sinks(capsys, config, rows)
    assert told == {answered["request_id"]}


def test_a_source_outside_the_window_is_none(config: Path, capsys: Capture) -> None:
    asked, answered = (row(one) for one in pairs(1))
    for age_s, found in ((299.0, True), (301.0, False)):
        answered["ts"] = asked["ts"] + age_s
        answered["ts_end"] = answered["ts"] + 1
        assert bool(sinks(capsys, config, [asked, answered])[0]) is found


def test_repeated_request_ids_are_requests_of_their_own(config: Path, capsys: Capture) -> None:
    traffic = [{**row(one), "request_id": "same"} for one in pairs(PAIRS)]
    _, document = sinks(capsys, config, traffic)
    assert document["requests"] == 2 * PAIRS
    assert len(document["findings"]) == PAIRS
    assert {one["sink"]["tenant"] for one in document["findings"]} == {"globex"}


def test_shuffled_lines_give_the_same_findings(config: Path, capsys: Capture) -> None:
    traffic = [row(one) for one in pairs(PAIRS)]
    expected, _ = sinks(capsys, config, traffic)
    for seed in range(5):
        Random(seed).shuffle(traffic)
        assert sinks(capsys, config, traffic)[0] == expected
