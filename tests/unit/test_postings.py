"""The posting index against plain dicts, through growth, sweeps, expiry and eviction."""

import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.index import postings
from detector.index.bucket_table import BUCKETS_PER_KEY, BucketTable
from detector.index.postings import Positions, PostingIndex
from detector.index.sequences import SequenceStore
from detector.kernels import buckets
from detector.kernels.buckets import STEP, USED, WIDER, home, place
from detector.kernels.postings import HIT_CAP, OWNER_CAP
from detector.kernels.tenants import find
from detector.kernels.winnow import winnow
from detector.model import MAX_SEQUENCE_TOKENS, Kind, Sequence
from detector.sketch.shingle import Keys, shingle_keys
from tests.unit.postings_model import Hit, PostingModel, as_listed
from tests.unit.sequences import found, pairs, prompt, response, sequence, text

WINDOW_MS, KEEP_MS = 900_000, 960_000
LARGE = 1 << 30


def positions(count: int) -> Positions:
    """Return those of so many shingles in a row."""
    return np.arange(count, dtype=np.int32)


class Pair:
    """The index and the model of it, fed with the same."""

    def __init__(self, memory_bytes: int = LARGE) -> None:
        self.store = SequenceStore()
        self.index = PostingIndex(self.store, memory_bytes=memory_bytes)
        self.model = PostingModel(window_ms=WINDOW_MS)
        self.dropped = 0

    def observe(self, one: Sequence, party: int, keys: Keys) -> tuple[list[Hit], list[Hit]]:
        """Return the hits of both."""
        gone = self.index.make_room(len(keys), self.store.expired(one.started_at_ms - KEEP_MS))
        self.store.release(gone)
        self.model.gone = self.dropped + gone
        at = self.store.add(one, party)
        hits = self.index.observe(keys, positions(len(keys)), at, window_ms=WINDOW_MS)
        order = int(self.store.orders[at])
        return as_listed(hits, self.dropped), self.model.observe(keys.tolist(), one, party, order)

    def renumber(self) -> None:
        """Give up the positions of what is gone."""
        count = self.index.renumber()
        self.store.drop(count)
        self.dropped += count

    def live(self) -> tuple[int, int]:
        """Return the live rows of both."""
        return self.index.live_postings(self.model.gone - self.dropped), self.model.live()


CROWDED = [
    home << 32 | tag << 18 for home in (0, 1, 2**30, 2**31 - 1, -1, -(2**31)) for tag in range(6)
]
"""Keys of few homes, the table's last ones among them: long clusters, broken by any mistake."""

steps = st.lists(
    st.tuples(
        st.integers(1, 4),  # party
        st.sampled_from(Kind),
        st.integers(0, 400),  # seconds since the last one
        st.integers(0, 500),  # seconds until the end
        st.lists(st.sampled_from(CROWDED), max_size=12),
        st.integers(0, 6),  # 0: renumber
    ),
    max_size=40,
)
FIXED = settings(deadline=None, derandomize=True, max_examples=200)


def play(both: Pair, drawn: list[tuple[int, Kind, int, int, list[int], int]]) -> None:
    """Feed both with the same steps and compare after each."""
    at = 0
    for number, (party, kind, pause, took, keys, renumber) in enumerate(drawn):
        at += pause
        end = at + took if kind is Kind.RESPONSE else at
        one = sequence(kind, f"t{party}", f"r{number}", at, text(1, 1), end_s=end)
        found_hits, wanted = both.observe(one, party, np.array(keys, np.int64))
        assert found_hits == wanted
        if not renumber:
            both.renumber()
        live, model_live = both.live()
        assert live == model_live


@FIXED
@given(steps)
def test_hits_and_live_rows_equal_the_model(
    drawn: list[tuple[int, Kind, int, int, list[int], int]],
) -> None:
    play(Pair(), drawn)


@FIXED
@given(steps)
def test_growth_from_a_tiny_table_and_eviction_keep_what_they_should(
    drawn: list[tuple[int, Kind, int, int, list[int], int]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "_FIRST_HOMES", 1)
        patch.setattr(postings, "_LEAST_HOMES", 12)
        both = Pair(memory_bytes=1)
        play(both, drawn)


@pytest.mark.parametrize("seed", range(3))
def test_real_shingles_through_growth_and_eviction_equal_the_model(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,000 sequences out of shared phrases in a table for 1,500 postings."""
    monkeypatch.setattr(postings, "_FIRST_HOMES", 4)
    monkeypatch.setattr(postings, "_LEAST_HOMES", 700)
    rng = np.random.default_rng(seed)
    phrases = [shingle_keys(text(n, 30)) for n in range(60)]
    both = Pair(memory_bytes=1)
    hits = 0
    for number in range(2000):
        kind = (Kind.PROMPT, Kind.RESPONSE)[number % 2]
        at = number * 2.0
        one = sequence(kind, "t", f"r{number}", at, text(1, 1), end_s=at + number % 2 * 9)
        keys = np.concatenate([phrases[n] for n in rng.integers(0, 60, 2)])
        found_hits, wanted = both.observe(one, int(rng.integers(1, 6)), keys)
        assert found_hits == wanted
        hits += len(wanted)
    assert hits > 10_000
    assert both.index.evicted_sequences > 100
    assert both.live()[0] == both.live()[1] > 500


@pytest.mark.parametrize("memory_bytes", [13_000_000, 20_000_001])
def test_the_byte_budget_holds_and_evictions_are_counted(memory_bytes: int) -> None:
    index = PostingIndex(store := SequenceStore(), memory_bytes=memory_bytes)
    full, gone = MAX_SEQUENCE_TOKENS - 9, 0
    for number in range(10):
        gone = index.make_room(full, 0)
        store.release(gone)
        at = store.add(prompt("a", f"{number}", number, text(1, 1)), 1)
        keys = shingle_keys(text(number, MAX_SEQUENCE_TOKENS))
        index.observe(keys, positions(full), at, window_ms=WINDOW_MS)
        assert index.nbytes <= memory_bytes
    assert index.evicted_sequences == gone > 0
    assert index.rows == index.live_postings(gone) == (10 - gone) * full


def test_room_that_an_eviction_has_used_is_not_spent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "_FIRST_HOMES", 250)
    monkeypatch.setattr(postings, "_LEAST_HOMES", 250)
    index = PostingIndex(store := SequenceStore(), memory_bytes=1)
    for number, count in enumerate([300, 400, 280, 100, 250, 500, 120]):
        store.release(index.make_room(count, 0))
        at = store.add(prompt("a", f"{number}", number, text(1, 1)), 1)
        keys = shingle_keys(text(number, count + 9))
        index.observe(keys, positions(count), at, window_ms=WINDOW_MS)
        assert index.rows <= 1000 * postings.LOAD_LIMIT
    assert index.evicted_sequences > 2


def test_what_has_expired_goes_before_what_lives_and_is_no_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """100 sequences fill the table; 5 have expired, fewer than a sweep is worth otherwise."""
    monkeypatch.setattr(postings, "_FIRST_HOMES", 250)
    monkeypatch.setattr(postings, "_LEAST_HOMES", 250)
    both = Pair(memory_bytes=1)
    full = int(1000 * postings.LOAD_LIMIT)
    for number in range(100):
        at = 0 if number < 5 else 900
        count = full // 100 if number else full - 99 * (full // 100)
        both.observe(
            prompt("a", f"{number}", at, text(1, 1)), 1, shingle_keys(text(number, count + 9))
        )
    assert both.index.rows == full
    both.observe(prompt("a", "new", 970, text(1, 1)), 1, shingle_keys(text(100, 12)))
    assert both.model.gone == 5
    assert both.index.evicted_sequences == 0


def test_growing_to_two_million_postings_moves_a_bounded_part_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every sequence pays for its own keys; none pays for the whole table."""
    index = PostingIndex(store := SequenceStore(), memory_bytes=LARGE)
    moved: list[int] = []
    grow = buckets.grow

    def counted(*args: object) -> int:
        moved.append(int(grow(*args)))
        return moved[-1]

    monkeypatch.setattr(buckets, "grow", counted)
    rng = np.random.default_rng(1)
    most, homes = 0, index.table[0][WIDER]
    growths = 0
    for number in range(2000):
        moved.clear()
        store.release(index.make_room(1000, 0))
        at = store.add(prompt("a", f"{number}", number, text(1, 1)), 1)
        keys = rng.integers(-(1 << 63), (1 << 63) - 1, 1000)
        index.observe(keys, positions(1000), at, window_ms=WINDOW_MS)
        if number >= 100:
            most = max(most, sum(moved))
        growths += index.table[0][WIDER] != homes
        homes = index.table[0][WIDER]
    assert growths > 20
    assert 0 < most <= BUCKETS_PER_KEY * 1000 + 500 < homes // 100
    assert index.rows == 2_000_000
    assert index.live_postings(0) == 2_000_000
    assert index.nbytes < 36 * index.rows


def test_a_small_table_takes_little_of_the_memory_that_it_may_take() -> None:
    keys = shingle_keys(text(1, 1009))
    before, held = _resident(), []
    for _ in range(64):
        index = PostingIndex(store := SequenceStore(), memory_bytes=LARGE)
        index.make_room(len(keys), 0)
        at = store.add(prompt("a", "1", 0, text(1, 1)), 1)
        index.observe(keys, positions(1000), at, window_ms=WINDOW_MS)
        held.append(index)
    assert _resident() - before < len(held) * 1024**2


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@FIXED
@given(st.lists(st.integers(0, 300), max_size=12), st.integers(0, 1 << 32))
def test_a_table_loses_and_doubles_nothing_at_any_point_of_its_growth(
    steps: list[int], seed: int
) -> None:
    """Crowded homes, the last ones among them: long chains cross the border as it moves."""
    rng = np.random.default_rng(seed)
    table = BucketTable(64, 1 << 10, limit=0.9, growth=1.3)
    keys = rng.integers(-(1 << 63), (1 << 63) - 1, 300)
    keys[100:200] = keys[:1] + np.arange(100)
    held: set[int] = set()
    for number, count in enumerate(steps):
        for key in rng.choice(keys, min(count, 60)).tolist():
            assert table.make_room(1)
            row = place(table.slots, key)
            if key not in held:
                table.slots[int(row)] = key
                table.slots[int(row) + 1] = number + 1
                table.slots[USED] += 1
                held.add(key)
        table.grow(count)
        rows = table.slots[8:].reshape(-1, 2)
        assert sorted(rows[rows[:, 1] != 0, 0].tolist()) == sorted(held)
        for key in held:
            assert find(table.slots, key)[1]


def test_a_key_with_1000_owners_stays_bounded() -> None:
    index = PostingIndex(store := SequenceStore(), memory_bytes=LARGE)
    keys = shingle_keys(text(1, 30))
    hits = 0
    for party in range(1, 1001):
        at = store.add(response(f"t{party}", "r", party / 10, text(1, 1)), party)
        made = index.observe(keys, positions(len(keys)), at, window_ms=WINDOW_MS)
        assert party == 1 or 0 in made.other, "the first owner is never displaced"
        hits = max(hits, len(made.at))
    assert index.rows == len(keys) * OWNER_CAP
    assert hits == len(keys) * HIT_CAP


def test_the_first_posting_that_lives_is_kept_when_the_first_of_all_has_expired() -> None:
    """Whether the table was swept in between must not change what is found."""
    keys = shingle_keys(text(1, 10))
    for swept in (False, True):
        both = Pair()
        for at in (0, 900, 970):
            both.observe(prompt("a", f"{at}", at, text(1, 1)), 1, keys)
            if swept:
                both.renumber()
        hits, wanted = both.observe(response("b", "r", 980, text(1, 1)), 2, keys)
        assert hits == wanted == [(1, 0, 0, True), (2, 0, 0, True)]


def test_a_capped_shingle_does_not_break_a_run() -> None:
    """100 tenants hold the middle of the run, so the source's row of it is not kept."""
    secret = text(1, 40)
    crowd = [prompt(f"t{n}", f"q{n}", n / 100, secret[12:28]) for n in range(100)]
    findings = found([*crowd, prompt("a", "1", 5, secret), response("b", "2", 9, secret)])
    assert pairs(findings) == {("2", "a")}
    assert findings[0].evidence.matched_tokens == 40


def test_more_hits_than_the_buffer_holds_are_all_returned() -> None:
    both = Pair()
    keys = shingle_keys(text(1, 3009))
    for party in range(1, 2 + HIT_CAP):
        hits, wanted = both.observe(response(f"t{party}", "r", party, text(1, 1)), party, keys)
        assert hits == wanted
    assert len(hits) == HIT_CAP * 3000


def test_a_sampled_key_keeps_its_position_in_the_sequence() -> None:
    both = Pair()
    keys = shingle_keys(text(1, 30))
    both.observe(prompt("a", "1", 0, text(1, 1)), 1, keys)
    at = both.store.add(response("b", "2", 1, text(1, 1)), 2)
    third = positions(len(keys))[::3]
    hits = both.index.observe(keys[third], third, at, window_ms=WINDOW_MS)
    assert hits.at.tolist() == hits.other_at.tolist() == third.tolist()
    assert both.index.rows == len(keys) + len(third)
    later = both.store.add(response("c", "3", 2, text(1, 1)), 3)
    again = both.index.observe(keys[third], third, later, window_ms=WINDOW_MS)
    assert set(again.other_at.tolist()) == set(third.tolist())


def test_pools_never_meet() -> None:
    both = Pair()
    keys = shingle_keys(text(1, 30))
    filed = [keys ^ both.index.salt(pool) for pool in ("p", "q", "p")]
    assert np.array_equal(filed[0], filed[2])
    assert not np.isin(filed[0], filed[1]).any()


def test_an_empty_sequence_is_no_work() -> None:
    both = Pair()
    assert both.observe(prompt("a", "1", 0, text(1, 0)), 1, np.empty(0, np.int64)) == ([], [])
    assert both.index.rows == 0


def test_a_sample_of_the_smallest_keys_is_spread_over_the_table() -> None:
    """Placed by their highest bits as they are, they would pile up and overflow at one end."""
    keys = np.random.default_rng(4).integers(-(1 << 63), (1 << 63) - 1, 400_000)
    picked = keys[winnow(keys, 16)]
    unstirred = (picked.view(np.uint64) >> np.uint64(58)).astype(np.int64)
    table = BucketTable(64, 64, limit=0.6, growth=1.1).slots
    homes = np.array([int(home(key, table)) // int(STEP) - 1 for key in picked])
    assert np.bincount(unstirred).max() * 64 / len(picked) > 4
    assert np.bincount(homes).max() * 64 / len(picked) < 1.2


def test_no_posting_of_a_sample_is_lost() -> None:
    draw = np.random.default_rng(5)
    index = PostingIndex(store := SequenceStore(), memory_bytes=LARGE)
    held = 0
    for number in range(200):
        keys = draw.integers(-(1 << 63), (1 << 63) - 1, 1_000)
        picked = np.flatnonzero(winnow(keys, 8)).astype(np.int32)
        held += len(picked)
        index.make_room(len(keys), 0)
        at = store.add(response("t", str(number), 0, text(number, 10)), 1)
        index.observe(keys[picked] ^ index.salt("pool"), picked, at, window_ms=300_000)
    assert index.live_postings(0) == held
