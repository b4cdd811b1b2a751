"""The store of live sequences against a plain list."""

import random

import numpy as np
import pytest

from detector.index.sequences import SequenceStore, request_key
from detector.model import Kind, Sequence
from ingest.limits import MAX_TIME_MS
from tests.unit.sequences import prompt, response, text


def some(rng: random.Random, number: int) -> Sequence:
    make = rng.choice((prompt, response))
    tokens = text(number, rng.randrange(5))
    return make(rng.choice("abc"), f"r{number // 3}", number // 3, tokens, part=number % 3)


@pytest.mark.parametrize("seed", range(5))
def test_positions_and_columns_survive_adding_releasing_and_dropping(seed: int) -> None:
    rng, released = random.Random(seed), 0
    store, model = SequenceStore(), list[tuple[Sequence, int]]()
    for number in range(3000):
        one, party = some(rng, number), rng.randrange(1, 9)
        assert store.add(one, party) == len(model)
        model.append((one, party))
        if rng.random() < 0.003:
            released = max(released, rng.randrange(len(model) + 1))
            store.release(released)
        if rng.random() < 0.001:
            store.drop(released)
            del model[:released]
            released = 0
    items = [one for one, _ in model]
    assert len(store) == len(items)
    assert store.first_live == released
    assert store.items == dict(list(enumerate(items))[released:])
    assert store.tokens == sum(len(one.token_hashes) for one in items[released:])
    live = slice(len(items))
    assert store.owners[live].tolist() == [
        party * 2 + (one.kind is Kind.RESPONSE) for one, party in model
    ]
    assert store.starts[live].tolist() == [one.started_at_ms for one in items]
    assert store.ends[live].tolist() == [one.ended_at_ms for one in items]
    again = SequenceStore()
    for one, party in model:
        again.add(one, party)
    assert store.orders[live].tolist() == again.orders[live].tolist()


def test_prompts_of_a_request_are_its_parts_only() -> None:
    store = SequenceStore()
    parts = [prompt("a", "1", 0, text(n, 3), part=n, parts=2) for n in range(2)]
    others = [
        prompt("b", "1", 0, text(5, 3)), prompt("a", "1", 9, text(6, 3)),
        prompt("a", "2", 0, text(7, 3)), response("a", "1", 0, text(8, 3)),
    ]  # fmt: skip
    for one in (*parts, *others):
        store.add(one, 1)
    assert list(store.prompts_of(response("a", "1", 0, text(9, 3)))) == parts
    assert not list(store.prompts_of(response("z", "1", 0, text(9, 3))))
    store.release(2)
    assert not list(store.prompts_of(parts[0]))
    assert len(store) == 6


def test_a_part_that_is_released_leaves_the_others() -> None:
    store = SequenceStore()
    parts = [prompt("a", "1", 0, text(n, 3), part=n, parts=3) for n in range(3)]
    for one in (*parts, parts[0]):
        store.add(one, 1)
    for gone in range(1, 5):
        store.release(gone)
        assert list(store.prompts_of(parts[0])) == [*parts, parts[0]][gone:]


def test_a_prompt_may_be_missed_where_so_late_a_start_was_evicted() -> None:
    store = SequenceStore()
    for at in range(10):
        store.add(prompt("a", f"{at}", at, text(at, 3)), 1)
    answers = [response("a", f"{at}", at, text(at, 3)) for at in range(10)]
    never = [response("b", f"{at}", at, text(at, 3)) for at in range(10)]

    def lacking(of: list[Sequence]) -> list[int]:
        return [at for at, one in enumerate(of) if store.may_lack_prompt(one)]

    store.release(store.expired(2000))
    assert lacking(answers) == lacking(never) == []
    store.release(6)
    assert lacking(answers) == lacking(never) == [2, 3, 4, 5]
    store.drop(6)
    assert lacking(answers) == [2, 3, 4, 5]
    store.expired(5000)
    assert lacking(answers) == lacking(never) == [5]
    store.release(store.expired(9000))
    assert lacking(answers) == []


def test_a_prompt_is_missed_when_one_part_was_evicted_and_no_prompt_misses_its_own() -> None:
    store = SequenceStore()
    parts = [prompt("a", "1", 0, text(n, 3), part=n, parts=2) for n in range(2)]
    for one in parts:
        store.add(one, 1)
    answer = response("a", "1", 0, text(9, 3))
    assert not store.may_lack_prompt(answer)
    store.release(1)
    assert store.may_lack_prompt(answer)
    assert not store.may_lack_prompt(parts[1])


def test_expiry_counts_the_oldest_in_a_row_and_only_moves_on() -> None:
    store = SequenceStore()
    for at in (0, 1, 5, 2, 9):
        store.add(prompt("a", str(at), at, text(1, 1)), 1)
    assert store.expired(0) == 0
    assert store.expired(1001) == 2
    assert store.expired(5001) == 4
    store.drop(3)
    assert store.expired(5001) == 1
    assert store.expired(10_000) == 2
    store.drop(2)
    assert store.expired(99_999) == 0


def test_the_earlier_request_is_the_source_and_ties_do_not_depend_on_arrival() -> None:
    names = [("a", "1"), ("b", "1"), ("a", "2"), ("b", "2")]
    ranks = set()
    for seed in range(10):
        store = SequenceStore()
        random.Random(seed).shuffle(names)
        for tenant, request in names:
            store.add(response(tenant, request, 5, text(1, 1)), 1)
        rank = {name: int(store.orders[at]) for at, name in enumerate(names)}
        ranks.add(tuple(sorted(rank, key=rank.__getitem__)))
    assert len(ranks) == 1
    store.add(response("z", "9", 4.999, text(1, 1)), 1)
    assert store.orders[4] < store.orders[:4].min()


@pytest.mark.parametrize("at_ms", [-MAX_TIME_MS, -1, 0, MAX_TIME_MS])
def test_every_time_that_a_record_may_have_is_ordered(at_ms: int) -> None:
    """Milliseconds of the year 9999 leave fewer bits for the tie than those of today."""
    store = SequenceStore()
    for shift in (0, 1):
        one = response("a", "1", 0, text(1, 1))
        one.started_at_ms = one.ended_at_ms = at_ms - shift
        store.add(one, 1)
    assert store.orders[1] < store.orders[0]
    assert np.sign(store.orders[1]) == np.sign(at_ms - 1)


def test_a_request_is_its_tenant_id_and_start() -> None:
    one = prompt("a", "1", 0, text(1, 1))
    assert request_key(one) == request_key(response("a", "1", 0, text(2, 2), end_s=9))
    for other in ("b", "1", 0), ("a", "2", 0), ("a", "1", 1):
        assert request_key(prompt(*other, text(1, 1))) != request_key(one)
