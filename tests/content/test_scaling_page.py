"""docs/scaling.md has the tables that the formulas make, and these agree with measurements."""

import numpy as np
import pytest

from tests.bench.scaling import (
    BUSY,
    RATES,
    Check,
    Load,
    busiest,
    check_table,
    checks,
    plan,
    plan_table,
)
from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")

TOLERANCE = 0.2
"""Tables grow in steps of two, and two workers were measured on cores that others used as well."""


def test_the_page_has_the_tables_of_the_script() -> None:
    lines = PAGE.splitlines()
    assert [line for line in (*check_table(), *plan_table(RATES)) if line not in lines] == []


@pytest.mark.parametrize("check", list(checks()), ids=lambda one: one.what)
def test_formulas_agree_with_what_was_measured(check: Check) -> None:
    assert abs(check.off) < TOLERANCE


@pytest.mark.parametrize(("pools", "workers"), [(100, 3), (1_000, 18), (1_000, 30), (10_000, 30)])
def test_the_busiest_worker_is_as_busy_as_chance_makes_it(pools: int, workers: int) -> None:
    draw = np.random.default_rng(1)
    drawn = draw.multinomial(pools, [1 / workers] * workers, size=400).max(axis=1)
    mean = float(drawn.mean()) / (pools / workers)
    assert mean <= busiest(pools, workers) <= 1.2 * mean


@pytest.mark.parametrize("sampling", ["every", "winnow"])
@pytest.mark.parametrize("rate", [50_000, 1_000_000, 10_000_000])
def test_no_worker_is_planned_beyond_its_share_of_a_core(rate: int, sampling: str) -> None:
    made = plan(Load(rate), sampling)
    used = rate / made.workers * made.cpu_us / 1e6 * made.busiest
    assert used <= BUSY
    assert made.partitions >= 2 * made.workers
