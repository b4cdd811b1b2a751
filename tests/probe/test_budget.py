"""A probe never sends more requests, and never takes longer, than it says."""

import threading
import time
from collections.abc import Iterator
from typing import Final

import pytest

from detector.check.verdict import Verdict
from detector.errors import BudgetError
from detector.probe.budget import Budget
from detector.sample.language import Language, load_language
from tests.fakes.http_engine import EngineOptions, HttpEngine, http_engine
from tests.probe.kit import checks, probed

POOL: Final = 4_096


@pytest.fixture(scope="module")
def language() -> Language:
    return load_language()


@pytest.fixture
def engine(language: Language) -> Iterator[HttpEngine]:
    with http_engine(language, EngineOptions(pool_tokens=POOL, context_tokens=POOL)) as made:
        yield made


@pytest.mark.parametrize("most", [8, 11, 17, 26, 60])
def test_no_more_requests_than_said_reach_the_engine(engine: HttpEngine, most: int) -> None:
    found = probed(engine, max_requests=most)
    assert engine.calls == found.record.requests == most
    assert not found.record.passed
    last = found.results[-1]
    assert last.said.verdict is Verdict.UNKNOWN
    assert last.said.found == f"all {most} requests are used up"


def test_a_budget_without_room_for_a_first_answer_is_an_error(engine: HttpEngine) -> None:
    with pytest.raises(BudgetError, match="--max-requests"):
        probed(engine, max_requests=3)
    assert engine.calls == 3


def test_time_that_is_over_ends_what_is_under_way(language: Language) -> None:
    options = EngineOptions(pool_tokens=POOL, context_tokens=POOL, delay_s=0.05)
    with http_engine(language, options) as engine:
        began = time.monotonic()
        found = probed(engine, only=("canary-short",), max_seconds=2.0)
        assert time.monotonic() - began < 4.0
    assert checks(found, Verdict.UNKNOWN) == {"canary-short"}
    assert found.results[-1].said.found == "2 seconds are over"


def test_a_budget_holds_between_threads() -> None:
    budget = Budget(requests=500, seconds=60.0)
    refused = []

    def use() -> None:
        for _ in range(200):
            try:
                budget.spend()
            except BudgetError:
                refused.append(1)

    threads = [threading.Thread(target=use) for _ in range(5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (budget.used, len(refused)) == (500, 500)


def test_time_is_that_of_the_clock() -> None:
    now = [0.0]
    budget = Budget(requests=10, seconds=5.0, clock_s=lambda: now[0])
    budget.spend()
    now[0] = 5.0
    with pytest.raises(BudgetError, match="5 seconds are over"):
        budget.spend()
    assert (budget.used, budget.left_s) == (1, 0.0)
