"""The back-pressure answer: stops above one level, resumes below another, never on a guess."""

import pytest

from ingest.push.pressure import MAX_POOLS, BackPressure
from ingest.push.settings import BackPressureSettings
from ingest.schema_records import RuntimeSample


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pressure(clock: Clock) -> BackPressure:
    return BackPressure(BackPressureSettings(), clock=clock)


def sample(
    usage: float | None, engine: str = "e", kv_pool: str = "p", rank: int | None = None
) -> RuntimeSample:
    return RuntimeSample(
        engine=engine,
        kv_pool=kv_pool,
        rank=rank,
        sampled_at_ms=0,
        engine_kind="vllm",
        pool_usage_ratio=usage,
    )


@pytest.mark.parametrize(
    ("usages", "admits"),
    [
        ([0.5, 0.85, 0.90], [True, True, True]),
        ([0.901, 0.85, 0.80, 0.79, 0.85], [False, False, False, True, True]),
        ([0.95, 1.0, 1.2, 0.0, 0.9], [False, False, False, True, True]),
    ],
)
def test_it_stops_above_and_resumes_below(
    pressure: BackPressure, usages: list[float], admits: list[bool]
) -> None:
    found = []
    for usage in usages:
        pressure.hear(sample(usage))
        found.append(pressure.look().admit)
    assert found == admits


def test_what_is_not_known_changes_nothing(pressure: BackPressure) -> None:
    assert pressure.look().admit
    assert pressure.look().pools == []
    pressure.hear(sample(0.95))
    pressure.hear(sample(None))
    assert not pressure.look().admit
    assert pressure.look().pools[0].pool_usage_ratio == 0.95


def test_what_is_old_stops_nobody_and_is_forgotten(pressure: BackPressure, clock: Clock) -> None:
    pressure.hear(sample(0.95))
    clock.now_s += 15.0
    assert not pressure.look().admit
    clock.now_s += 0.001
    assert pressure.look().admit
    (pool,) = pressure.look().pools
    assert (pool.state, pool.age_ms) == ("unknown", 15_001)
    pressure.hear(sample(0.85))  # between the levels, and nothing is known of before
    assert pressure.look().admit


def test_one_full_pool_stops_all_unless_one_is_asked_for(pressure: BackPressure) -> None:
    pressure.hear(sample(0.95, "a", "x"))
    pressure.hear(sample(0.10, "b", "y"))
    pressure.hear(sample(0.10, "c", "x"))
    assert not pressure.look().admit
    assert pressure.look(engine="b").admit
    assert not pressure.look(engine="a").admit
    assert not pressure.look(kv_pool="x").admit
    assert pressure.look(engine="c", kv_pool="x").admit


def test_every_rank_has_its_own_pool(pressure: BackPressure) -> None:
    pressure.hear(sample(0.95, rank=0))
    pressure.hear(sample(0.10, rank=1))
    assert [(pool.rank, pool.state) for pool in pressure.look().pools] == [
        (0, "stop"),
        (1, "admit"),
    ]
    assert not pressure.look().admit


def test_the_memory_of_pools_is_bounded(pressure: BackPressure) -> None:
    for number in range(MAX_POOLS + 10):
        pressure.hear(sample(0.1, f"engine-{number}"))
    assert len(pressure.look().pools) == MAX_POOLS
    assert not pressure.look(engine="engine-9").pools


def test_levels_that_cross_are_refused() -> None:
    with pytest.raises(ValueError, match="resume_below"):
        BackPressureSettings(stop_above=0.5, resume_below=0.6)
