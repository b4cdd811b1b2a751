"""The reference reproduces the filter table of the evaluation data's README, figure by figure."""

from pathlib import Path

import numpy as np
import pytest

from tests.reference import table
from tests.reference.table import Mask, Runs
from tests.reference.taint import judge_in_order
from tests.reference.traffic import Record, Traffic, read_jsonl

LENGTHS = (10, 12, 16, 24)

CLEAN = {
    "none": (957, 616, 279, 103),
    "same pool": (274, 162, 55, 13),
    "common": (428, 243, 104, 41),
    "own history": (505, 268, 127, 53),
    "own prompt": (883, 542, 230, 83),
    "same question": (784, 490, 183, 53),  # the README says 52: one response apart, not explained
    "low complexity": (897, 559, 238, 88),
    "C4": (154, 57, 10, 1),
    "C5": (19, 8, 0, 0),
}
"""Filter -> responses of 5,928 clean ones flagged at >= 10, 12, 16, 24 tokens."""

RECALL = dict.fromkeys(CLEAN, (98.0, 78.3)) | {
    "common": (97.7, 77.3),
    "C4": (97.7, 77.3),
    "C5": (97.7, 77.3),
}
"""Filter -> percent of the 300 planted bleeds found at >= 10 and >= 16 tokens."""


class World:
    """One traffic, its hits, and which hits each row of the table explains."""

    def __init__(self, history: list[Record], hour: list[Record]) -> None:
        self.traffic = t = Traffic(history, hour)
        self.hits = h = table.hits(t)
        shown = table.first_shown(t)
        self.explained: dict[str, Mask] = {
            "none": np.zeros(len(h.sink), np.bool_),
            "same pool": ~table.same_pool(t, h),
            "common": table.common(t, h, shown),
            "own history": table.own_history(t, h, shown),
            "own prompt": table.own_prompt(t, h),
            "same question": table.same_question(t, h),
            "low complexity": table.low_complexity(t, h),
            "template": table.template(t, h),
        }
        self.explained["C4"] = self.any_of(set(self.explained) - {"same pool"})
        self.explained["C5"] = self.any_of({"C4", "same pool"})

    def any_of(self, names: set[str]) -> Mask:
        return np.asarray(np.any([self.explained[name] for name in names], axis=0))

    def runs(self, explained: Mask) -> Runs:
        return table.runs(self.traffic, self.hits.keep(~explained))


def figures(found: Runs) -> tuple[int, ...]:
    return tuple(table.flagged(found, tokens) for tokens in LENGTHS)


@pytest.fixture(scope="module")
def dev(recorded_traffic: Path) -> Path:
    return recorded_traffic / "dev"


@pytest.fixture(scope="module")
def history(dev: Path) -> list[Record]:
    return read_jsonl(dev / "history.jsonl.zst")


@pytest.fixture(scope="module")
def clean(dev: Path, history: list[Record]) -> World:
    return World(history, read_jsonl(dev / "requests.jsonl.zst"))


@pytest.fixture(scope="module")
def planted(dev: Path, history: list[Record]) -> World:
    return World(history, read_jsonl(dev / "planted.jsonl.zst"))


def test_clean_rows(clean: World) -> None:
    rows = {name: figures(clean.runs(clean.explained[name])) for name in CLEAN}
    assert rows == CLEAN


def test_the_last_turns_alone_give_the_same_result_in_the_end(clean: World) -> None:
    last = table.same_question(clean.traffic, clean.hits, last_only=True)
    assert figures(clean.runs(last)) == (794, 498, 188, 56)
    rest = clean.any_of(set(CLEAN) - {"same question", "C4", "C5"}) | clean.explained["template"]
    assert figures(clean.runs(rest | last)) == CLEAN["C5"]


def test_without_the_day_before(clean: World) -> None:
    """28/12/0 is commonness that remembers the day and own history that only has the hour."""
    t, h = clean.traffic, clean.hits
    hour = table.first_shown(t, from_sequence=t.hour)
    rest = clean.any_of(set(CLEAN) - {"own history", "common", "C4", "C5"})
    rest |= clean.explained["template"] | table.own_history(t, h, hour)
    assert figures(clean.runs(rest | clean.explained["common"]))[:3] == (28, 12, 0)
    assert figures(clean.runs(rest | table.common(t, h, hour)))[:3] == (53, 23, 6)


def test_planted_rows(planted: World, dev: Path) -> None:
    truth = read_jsonl(dev / "truth.jsonl")
    found = {name: planted.runs(planted.explained[name]) for name in RECALL}
    rows = {
        name: tuple(table.recall(planted.traffic, runs, truth, tokens) for tokens in (10, 16))
        for name, runs in found.items()
    }
    assert rows == RECALL


def memoryless(world: World) -> Mask:
    names = {"same pool", "own prompt", "same question", "low complexity", "template"}
    return world.any_of(names)


def test_flagged_responses_left_out_keep_a_repeated_bleed_visible(
    dev: Path, history: list[Record], clean: World
) -> None:
    changed = {r["request_id"]: r for r in read_jsonl(dev / "planted_repeat_overlay.jsonl.zst")}
    hour = [changed.get(r["request_id"], r) for r in clean.traffic.records[len(history) :]]
    world = World(history, hour)
    truth = read_jsonl(dev / "truth_repeat.jsonl")
    recalls = []
    for leave_out in (False, True):
        found = judge_in_order(world.traffic, world.hits, memoryless(world), leave_out=leave_out)
        recalls.append(table.recall(world.traffic, found, truth, 10))
    assert recalls == [6.2, 100.0]
    left = judge_in_order(clean.traffic, clean.hits, memoryless(clean), leave_out=True)
    assert figures(left) == CLEAN["C5"]
