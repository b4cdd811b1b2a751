"""The owner of a range against a plain model: who has shown a tag, and what is told of it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.index.shingle_range import ShingleRange
from detector.index.showings import Showings
from detector.index.taint import TaintedShingles
from detector.index.tenant_table import mark_of, parties
from detector.kernels.tenants import MARKS

DAY_MS = 86_400_000
HALF_MS = DAY_MS // 2
Shown = tuple[int, int, int]
"""Tag, party, second."""

STEPS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 6), st.integers(0, DAY_MS // 1000 - 1)),
    max_size=60,
)
FIXED = settings(deadline=None, derandomize=True, max_examples=150)


def new_range(
    tainted: TaintedShingles | None = None, *, memory_bytes: int = 1 << 26
) -> ShingleRange:
    return ShingleRange(
        horizon_ms=DAY_MS, refresh_ms=HALF_MS, memory_bytes=memory_bytes,
        tainted=tainted or TaintedShingles(horizon_ms=DAY_MS),
    )  # fmt: skip


def showings(*shown: Shown) -> Showings:
    tags = np.array([tag << 40 | tag for tag, _, _ in shown], np.int64)
    return Showings(tags, np.array([mark_of(party, s * 1000) for _, party, s in shown], np.int64))


def told_by(one: ShingleRange, *shown: Shown, now_ms: int = 0) -> list[tuple[int, int]]:
    """Return (tag, party) of what is told."""
    told = one.learn(showings(*shown), now_ms=now_ms)
    return list(zip((told.tags & 0xFF).tolist(), parties(told.marks).tolist(), strict=True))


def model(steps: list[Shown]) -> list[tuple[int, int]]:
    """Return what is told of showings within one horizon."""
    heard: dict[int, dict[int, int]] = {}
    told: list[tuple[int, int]] = []
    for tag, party, second in steps:
        known = heard.setdefault(tag, {})
        others = [other for other in known if other != party]
        if party in known:
            if abs(second - known[party]) * 1000 < HALF_MS:
                continue
            known[party] = max(second, known[party])
            if others:
                told.append((tag, party))
            continue
        if len(known) == MARKS:
            continue
        known[party] = second
        if len(others) == 1:
            told.append((tag, others[0]))
        if others:
            told.append((tag, party))
    return told


@FIXED
@given(STEPS)
def test_it_tells_what_the_model_tells(steps: list[Shown]) -> None:
    one = new_range()
    assert [pair for step in steps for pair in told_by(one, step)] == model(steps)


@FIXED
@given(STEPS)
def test_many_at_once_are_told_as_one_by_one(steps: list[Shown]) -> None:
    assert told_by(new_range(), *steps) == model(steps)


@FIXED
@given(STEPS)
def test_what_comes_twice_at_the_same_time_tells_nothing_new(steps: list[Shown]) -> None:
    once = [(tag, party, 0) for tag, party, _ in steps]
    one = new_range()
    told_by(one, *once)
    assert not told_by(one, *once)


def test_a_party_of_the_older_generation_counts_until_it_is_forgotten() -> None:
    one = new_range()
    assert told_by(one, (1, 1, 0)) == []
    assert told_by(one, (2, 9, 0), now_ms=DAY_MS) == []
    assert told_by(one, (1, 2, 90_000), now_ms=DAY_MS) == [(1, 1), (1, 2)]
    assert told_by(one, (2, 3, 180_000), now_ms=2 * DAY_MS + 1) == [(2, 9), (2, 3)]
    assert told_by(one, (1, 4, 270_000), now_ms=4 * DAY_MS + 2) == []


def test_what_is_tainted_is_not_told() -> None:
    tainted = TaintedShingles(horizon_ms=DAY_MS)
    one = new_range(tainted)
    told_by(one, (1, 7, 100), (2, 7, 100))
    tainted.add(showings((1, 7, 100)).tags, origin=5, now_ms=60_000)
    assert told_by(one, (1, 8, 200), (2, 8, 200)) == [(2, 7), (2, 8)]


def test_the_byte_budget_holds_and_shortening_is_counted() -> None:
    one = new_range(memory_bytes=4 << 20)
    for number in range(40):
        tags = np.random.default_rng(number).integers(-(2**63), 2**63 - 1, 10_000)
        one.learn(Showings(tags, np.full(10_000, mark_of(number + 1, 0))), now_ms=number)
    assert one.nbytes <= 4 << 20
    assert one.early_rotations
    assert one.since_ms
