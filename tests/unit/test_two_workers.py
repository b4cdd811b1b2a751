"""What `make two-workers` tells of its rounds; on a busy machine it must not pass for shown."""

import os

import pytest

from tests.bench.two_workers import Round, Scale, Turn, faults, measure


def made(times: float, of_core: float = 1.0) -> Round:
    alone = Turn(tokens=1_000, wall_s=1.0, cpu_s=of_core)
    both = Turn(tokens=round(500 * times), wall_s=1.0, cpu_s=1.0)
    return Round((alone, alone), (both, both))


def test_two_that_hardly_slow_each_other_are_shown() -> None:
    assert made(1.9).times == pytest.approx(1.9)
    assert faults([made(1.9), made(1.95), made(1.7)]) == []


def test_two_that_slow_each_other_are_not() -> None:
    assert faults([made(1.7), made(1.9), made(1.6)]) == [
        "two judge 1.70 times what one does, not 1.8"
    ]


def test_a_busy_machine_shows_nothing() -> None:
    assert faults([made(1.9), made(1.9, of_core=0.6)]) == ["somebody got 60% of a core: not idle"]


def test_a_short_run_measures_both() -> None:
    cores = min(2, len(os.sched_getaffinity(0)))
    (one,) = measure(Scale(held=50, rounds=1, responses=20))
    assert len(one.alone) == len(one.both) == cores
    assert all(turn.tokens == 20_000 and turn.wall_s > 0 for turn in (*one.alone, *one.both))
