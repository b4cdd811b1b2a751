"""The two indexes that the bench compares do the same work: they find the same sequences."""

import numpy as np
import pytest

from detector.benchmarks.index_step import (
    BATCH_SEQUENCES,
    OWNERS,
    SEQUENCE_KEYS,
    DictIndex,
    OurIndex,
    Traffic,
    joins,
    stepper,
)
from detector.benchmarks.peers import installed

KEEP = 3
LIVE = KEEP * SEQUENCE_KEYS
COMMON = np.arange(10, dtype=np.int64)


def sequence(number: int) -> np.typing.NDArray[np.int64]:
    """Return keys of its own, the first ten of which everybody shows."""
    keys = np.arange(SEQUENCE_KEYS, dtype=np.int64) + (number + 1) * 1_000_000
    keys[:10] = COMMON
    return keys


def test_a_key_is_found_with_every_other_owner_that_lives() -> None:
    index = DictIndex(LIVE)
    found = []
    for number in range(6):
        index.step(number, number, sequence(number))
        found.append({(posting // OWNERS, key) for posting, key in index.hits})
    for number, hits in enumerate(found):
        lives = range(max(0, number - KEEP), number)
        assert hits == {(source, key) for source in lives for key in COMMON.tolist()}


def test_the_owner_itself_is_never_found() -> None:
    index = DictIndex(LIVE)
    for number in range(3):
        index.step(number, 7, sequence(number))
        assert index.hits == []


def test_what_everybody_has_given_up_is_forgotten() -> None:
    index = DictIndex(LIVE)
    for number in range(3):
        index.step(number, number, sequence(number))
    for number in range(3, 3 + KEEP):
        index.step(number, number, sequence(number) + 1_000_000_000)
    index.step(10, 10, sequence(0))
    assert index.hits == []


def test_what_is_filled_in_at_once_is_found_as_what_came_in_steps() -> None:
    index = DictIndex(LIVE)
    index.fill(np.concatenate([sequence(0), sequence(1)]))
    index.step(2, 2, sequence(2))
    assert {key for _, key in index.hits} == set(COMMON.tolist())


def test_our_index_holds_no_more_than_the_window_and_notes_its_longest_step() -> None:
    index, traffic = OurIndex(20 * SEQUENCE_KEYS), Traffic(1)
    for _ in range(40):
        index.fill(*traffic.sequence())
    early = index.bytes_per_posting()
    for _ in range(40):
        index.fill(*traffic.sequence())
    assert index.longest_ms > 0
    assert index.bytes_per_posting() <= early * 2


def test_work_made_beforehand_lasts_for_its_rounds() -> None:
    taken: list[int] = []
    work = stepper(lambda number, _owner, _keys: taken.append(number), Traffic(2), rounds=2)
    assert work() == work() == BATCH_SEQUENCES * SEQUENCE_KEYS
    assert taken == list(range(2 * BATCH_SEQUENCES))
    with pytest.raises(StopIteration):
        work()


def test_engines_that_are_installed_join_a_whole_step() -> None:
    works = joins(np.arange(SEQUENCE_KEYS, dtype=np.int64))
    engines = [name for name in ("polars", "duckdb") if installed(name)]
    assert [*works] == [f"{name} join (lookup only)" for name in engines]
    assert [work() for work in works.values()] == [BATCH_SEQUENCES * SEQUENCE_KEYS] * len(works)
