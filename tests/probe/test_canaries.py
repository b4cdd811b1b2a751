"""Canaries are found wherever they begin, and nothing else is taken for one."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from detector.probe.canaries import (
    CANARY_TOKENS,
    END_ID,
    FIRST_ID,
    RUN_TOKENS,
    Canaries,
    Echo,
)


@given(
    seed=st.integers(0, 2**32),
    start=st.integers(0, 200),
    length=st.integers(RUN_TOKENS, 3 * CANARY_TOKENS),
    before=st.integers(0, 20),
)
def test_a_stretch_of_a_canary_is_found_at_its_place(
    seed: int, start: int, length: int, before: int
) -> None:
    canaries = Canaries(Random(seed))
    prompt = canaries.plant(400)
    own = [END_ID] * before
    answer = own + prompt[start : start + length] + [END_ID] * 3
    assert canaries.echoes(answer) == [Echo(before, length, 0)]


@given(seed=st.integers(0, 2**32), length=st.integers(1, 2_000))
def test_what_holds_nothing_of_a_canary_is_not_told(seed: int, length: int) -> None:
    canaries = Canaries(Random(seed))
    canaries.plant(100)
    other = canaries.other(length)
    assert len(other) == length
    assert all(FIRST_ID <= one < END_ID for one in other)
    assert canaries.echoes(other) == []


def test_a_shorter_stretch_is_not_told() -> None:
    canaries = Canaries(Random(1))
    assert canaries.echoes(canaries.plant(100)[: RUN_TOKENS - 1]) == []


def test_canaries_that_follow_each_other_are_told_apart() -> None:
    canaries = Canaries(Random(1))
    first, second = canaries.plant(100), canaries.plant(100)
    assert canaries.echoes(first[:10] + second[:12]) == [Echo(0, 10, 0), Echo(10, 12, 1)]
