"""docs/scaling.md has the tables that the formulas make, and these agree with measurements."""

import numpy as np
import pytest

from tests.bench import scaling
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


HELD = [check for check in checks() if check.is_held]


@pytest.mark.parametrize("check", HELD, ids=lambda one: one.what)
def test_formulas_agree_with_what_was_measured(check: Check) -> None:
    assert abs(check.off) < TOLERANCE


def test_figures_of_two_workers_are_among_those_that_are_held() -> None:
    assert len([check for check in HELD if check.what.startswith("two workers")]) >= 3


@pytest.mark.parametrize("factor", [0.5, 1.5])
@pytest.mark.parametrize("figure", ["CPU_US", "POSTINGS", "POSTING_BYTES", "KEY_BYTES"])
def test_a_figure_that_is_half_wrong_is_noticed(
    monkeypatch: pytest.MonkeyPatch, figure: str, factor: float
) -> None:
    real = getattr(scaling, figure)
    wrong = (
        {name: one * factor for name, one in real.items()}
        if isinstance(real, dict)
        else real * factor
    )
    monkeypatch.setattr(scaling, figure, wrong)
    assert max(abs(check.off) for check in checks() if check.is_held) >= TOLERANCE


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
