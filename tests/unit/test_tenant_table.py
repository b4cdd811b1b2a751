"""The day-long memory against a plain dict of dicts."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.index.tenant_table import TenantTable, parties
from detector.kernels.tenants import MARKS, NOBODY, TIME_MASK, TIME_OFFSET
from detector.sketch.shingle import Keys, shingle_keys
from tests.unit.sequences import text

DAY_MS = 86_400_000
LARGE = 1 << 28
FIXED = settings(deadline=None, derandomize=True, max_examples=200)

Shown = dict[int, int]
"""When each party has first shown a key, in seconds."""


@dataclass
class Model:
    """Two generations of up to four parties a key; what is shown goes into the newer one."""

    new: dict[int, Shown] = field(default_factory=dict)
    old: dict[int, Shown] = field(default_factory=dict)
    began_ms: int | None = None

    def learn(self, keys: list[int], party: int, seen_ms: int) -> None:
        if not keys:
            return
        self.began_ms = seen_ms if self.began_ms is None else self.began_ms
        if seen_ms - self.began_ms >= DAY_MS:
            self.new, self.old, self.began_ms = {}, self.new, seen_ms
        for key in keys:
            shown = self.new.setdefault(key, {})
            if party in shown or len(shown) < MARKS:
                shown[party] = min(shown.get(party, seen_ms // 1000), seen_ms // 1000)

    def unlearn(self, keys: list[int], party: int, since_ms: int) -> None:
        for key in keys:
            for shown in (self.new.get(key, {}), self.old.get(key, {})):
                if shown.get(party, -(2**40)) >= since_ms // 1000:
                    del shown[party]

    def shown(self, key: int) -> Shown:
        both = [*self.old.get(key, {}).items(), *self.new.get(key, {}).items()]
        return {party: min(at for who, at in both if who == party) for party, _ in both}


def keys_of(values: list[int]) -> Keys:
    return np.array(values, np.int64)


def all_used(keys: Keys) -> np.ndarray:
    return np.ones(len(keys), np.bool_)


def learn(table: TenantTable, keys: Keys, party: int, seen_ms: int) -> None:
    table.learn(keys, all_used(keys), party=party, seen_ms=seen_ms, now_ms=seen_ms)


def shown(table: TenantTable, key: int) -> Shown:
    marks = table.lookup(keys_of([key]))[0]
    found: Shown = {}
    for party, mark in zip(parties(marks).tolist(), marks.tolist(), strict=True):
        if mark and party != NOBODY:
            at = (mark & int(TIME_MASK)) - TIME_OFFSET
            found[party] = min(at, found.get(party, at))
    return found


KEYS = [home << 32 | tag for home in (0, 1, 2**31 - 1, -1, -(2**31)) for tag in range(3)]

PAUSES = (-DAY_MS // 4, -1000, 0, 1000, 60_000, DAY_MS // 4, DAY_MS // 2)

steps = st.lists(
    st.tuples(
        st.booleans(),  # learn, or take back
        st.integers(1, 7),
        st.sampled_from(PAUSES),
        st.lists(st.sampled_from(KEYS), max_size=8),
    ),
    max_size=40,
)


@FIXED
@given(steps)
def test_marks_equal_the_model_through_generations(
    drawn: list[tuple[bool, int, int, list[int]]],
) -> None:
    table, model = TenantTable(horizon_ms=DAY_MS, memory_bytes=LARGE), Model()
    now = -DAY_MS
    for learning, party, pause, keys in drawn:
        now += pause
        if learning:
            learn(table, keys_of(keys), party, now)
            model.learn(keys, party, now)
        else:
            table.unlearn(keys_of(keys), party=party, since_ms=now - DAY_MS // 4)
            model.unlearn(keys, party, now - DAY_MS // 4)
        for key in KEYS:
            assert shown(table, key) == model.shown(key)
        assert table.is_empty == (not model.new and not model.old)
    assert table.early_rotations == 0


@pytest.fixture
def table() -> TenantTable:
    return TenantTable(horizon_ms=DAY_MS, memory_bytes=LARGE)


def test_many_keys_of_many_parties_survive_growth(table: TenantTable) -> None:
    keys = shingle_keys(text(1, 100_009))
    for party in (1, 2, 3):
        learn(table, keys[:: 2**party], party, party * 1000)
    marks = parties(table.lookup(keys))
    for at in range(0, len(keys), 997):
        wanted = {party for party in (1, 2, 3) if at % 2**party == 0}
        assert set(marks[at].tolist()) - {-1} == wanted
    assert not table.lookup(shingle_keys(text(2, 1000))).any()


def test_a_fifth_party_is_not_kept_and_the_first_four_stay(table: TenantTable) -> None:
    for party in range(1, 9):
        learn(table, keys_of([7]), party, party * 1000)
    assert shown(table, 7) == {1: 1, 2: 2, 3: 3, 4: 4}


def test_the_first_time_counts_whatever_the_order(table: TenantTable) -> None:
    for party in (1, 2):
        for seen_ms in (5000, 2000, 9000, -4000, 1000):
            learn(table, keys_of([7]), party, seen_ms)
    assert shown(table, 7) == {1: -4, 2: -4}


def test_unused_keys_are_not_learned(table: TenantTable) -> None:
    keys = keys_of([1, 2, 3])
    table.learn(keys, np.array([True, False, True]), party=1, seen_ms=0, now_ms=0)
    assert table.lookup(keys).any(axis=1).tolist() == [True, False, True]


def test_taking_back_spares_others_and_what_was_shown_before(table: TenantTable) -> None:
    for key, seen_ms in ((1, 1000), (2, 5000)):
        learn(table, keys_of([key]), 1, seen_ms)
        learn(table, keys_of([key]), 2, 5000)
    table.unlearn(keys_of([1, 2, 3]), party=1, since_ms=4000)
    assert shown(table, 1) == {1: 1, 2: 5}
    assert shown(table, 2) == {2: 5}
    learn(table, keys_of([2]), 1, 7000)
    assert shown(table, 2) == {1: 7, 2: 5}
    assert shown(table, 3) == {}


def test_taking_back_reaches_the_older_generation(table: TenantTable) -> None:
    learn(table, keys_of([1]), 1, 0)
    learn(table, keys_of([1]), 5, DAY_MS - 1000)
    learn(table, keys_of([2]), 3, DAY_MS)
    table.unlearn(keys_of([1]), party=5, since_ms=DAY_MS - 2000)
    assert shown(table, 1) == {1: 0}


def test_a_freed_mark_never_gives_a_party_two(table: TenantTable) -> None:
    for party in (1, 2):
        learn(table, keys_of([1]), party, 5000)
    table.unlearn(keys_of([1]), party=1, since_ms=0)
    learn(table, keys_of([1]), 2, 3000)
    assert shown(table, 1) == {2: 3}
    assert (parties(table.lookup(keys_of([1]))) == 2).sum() == 1
    for party in (3, 4, 5):
        learn(table, keys_of([1]), party, 6000)
    assert set(shown(table, 1)) == {2, 3, 4, 5}


def test_a_key_lives_one_to_two_horizons(table: TenantTable) -> None:
    learn(table, keys_of([1]), 1, 0)
    learn(table, keys_of([2]), 1, DAY_MS)
    assert shown(table, 1) == {1: 0}
    learn(table, keys_of([2]), 1, 2 * DAY_MS)
    assert shown(table, 1) == {}
    assert shown(table, 2) == {1: 86_400}


def test_a_mark_dies_with_its_horizon_though_others_still_show_the_key(table: TenantTable) -> None:
    learn(table, keys_of([1]), 1, 0)
    for day in (1, 2):
        learn(table, keys_of([1]), 2, day * DAY_MS)
    assert shown(table, 1) == {2: 86_400}


@pytest.mark.parametrize("seen_ms", [-253_402_300_799_999, -1, 0, 253_402_300_799_999])
def test_every_time_that_a_record_may_have_is_kept(table: TenantTable, seen_ms: int) -> None:
    """Times beyond 136 years from the epoch are kept as the last that fits."""
    learn(table, keys_of([1]), 1, seen_ms)
    assert shown(table, 1) == {1: min(max(seen_ms // 1000, -(2**32)), 2**32 - 1)}


@pytest.mark.parametrize("sharing", [1, 3])
def test_a_small_budget_is_kept_by_forgetting_early(sharing: int) -> None:
    budget = 4 * 1024 * 1024
    table = TenantTable(horizon_ms=DAY_MS, memory_bytes=budget)
    for number in range(60):
        keys = shingle_keys(text(number, 5009))
        for party in range(sharing):
            learn(table, keys, 1 + party, number)
        assert table.nbytes <= budget
        assert table.lookup(keys).any(axis=1).all()
    assert table.early_rotations > 0
    assert not table.lookup(shingle_keys(text(0, 5009))).any()


@pytest.mark.parametrize("budget", [4 * 1024 * 1024, 9_999_999])
def test_a_budget_is_used_before_anything_is_forgotten_early(budget: int) -> None:
    table = TenantTable(horizon_ms=DAY_MS, memory_bytes=budget)
    rng = np.random.default_rng(1)
    learned = 0
    while not table.early_rotations:
        keys = rng.integers(-(1 << 63), (1 << 63) - 1, 500)
        for party in (1, 2):
            learn(table, keys[:: 1 + 9 * (party - 1)], party, 0)
        learned += len(keys)
    full = budget // 2 / (16 / 0.65 + 32 / 10)
    assert 0.7 * full < learned < 1.1 * full


def test_nothing_outlives_a_silence_of_two_horizons(table: TenantTable) -> None:
    learn(table, keys_of([1]), 1, 0)
    learn(table, keys_of([2]), 2, 2 * DAY_MS)
    assert not shown(table, 1)
    assert set(shown(table, 2)) == {2}
