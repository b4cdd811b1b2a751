"""Density: shingles of a pool's window, by rate while the window has only begun."""

import pytest

from detector.index.density import PoolDensity

WINDOW = 300_000


def test_pools_count_apart_and_an_unknown_one_holds_nothing() -> None:
    density = PoolDensity(window_ms=WINDOW)
    for at in range(0, WINDOW + 1, 30_000):
        density.add("busy", 100, at)
        density.add("quiet", 1, at)
    assert density.shingles("busy") == 1100
    assert density.shingles("quiet") == 11
    assert density.shingles("unknown") == 0


def test_what_left_the_window_no_longer_counts() -> None:
    density = PoolDensity(window_ms=WINDOW)
    density.add("p", 1000, 0)
    density.add("p", 10, WINDOW)
    assert density.shingles("p") == 1010
    density.add("p", 10, WINDOW + 1)
    assert density.shingles("p") == 20


@pytest.mark.parametrize(("elapsed", "factor"), [(0, 10), (15_000, 10), (60_000, 5), (150_000, 2)])
def test_a_window_that_has_just_begun_is_scaled_up(elapsed: int, factor: int) -> None:
    density = PoolDensity(window_ms=WINDOW)
    density.add("p", 0, 0)
    density.add("p", 700, elapsed)
    assert density.shingles("p") == 700 * factor


def test_a_steady_rate_reads_the_same_from_its_first_minute_on() -> None:
    density = PoolDensity(window_ms=WINDOW)
    read = []
    for at in range(0, 4 * WINDOW, 1000):
        density.add("p", 500, at)
        if at >= 30_000:
            read.append(density.shingles("p"))
    assert min(read) >= 300 * 500 * 0.95
    assert max(read) <= 300 * 500 * 1.05


def test_times_before_the_epoch_and_late_ones_count() -> None:
    density = PoolDensity(window_ms=WINDOW)
    for at in (-WINDOW, -1000, -2000, 0):
        density.add("p", 5, at)
    assert density.shingles("p") == 20
