"""Density: shingles of a pool's window, by rate while the window has only begun."""

from itertools import count

import numpy as np
import pytest

from detector.index.density import PoolDensity
from detector.model import Hashes
from tests.unit.sequences import prompt, response

WINDOW = 300_000
NOTHING: Hashes = np.empty(0, np.uint32)


class Shown:
    """Shows shingles as requests, each another one."""

    def __init__(self) -> None:
        self.density = PoolDensity(window_ms=WINDOW)
        self._numbers = count()

    def add(self, pool: str, shingles: int, at_ms: int) -> None:
        one = prompt("a", f"r{next(self._numbers)}", at_ms / 1000, NOTHING, pool=pool)
        self.density.add(one, shingles)

    def shingles(self, pool: str) -> int:
        return self.density.shingles(pool)


def test_pools_count_apart_and_an_unknown_one_holds_nothing() -> None:
    density = Shown()
    for at in range(0, WINDOW + 1, 30_000):
        density.add("busy", 100, at)
        density.add("quiet", 1, at)
    assert density.shingles("busy") == 1100
    assert density.shingles("quiet") == 11
    assert density.shingles("unknown") == 0


def test_what_left_the_window_no_longer_counts() -> None:
    density = Shown()
    density.add("p", 1000, 0)
    density.add("p", 10, WINDOW)
    assert density.shingles("p") == 1010
    density.add("p", 10, WINDOW + 1)
    assert density.shingles("p") == 20


@pytest.mark.parametrize(("elapsed", "factor"), [(0, 10), (15_000, 10), (60_000, 5), (150_000, 2)])
def test_a_window_that_has_just_begun_is_scaled_up(elapsed: int, factor: int) -> None:
    density = Shown()
    density.add("p", 0, 0)
    density.add("p", 700, elapsed)
    assert density.shingles("p") == 700 * factor


def test_a_steady_rate_reads_the_same_from_its_first_minute_on() -> None:
    density = Shown()
    read = []
    for at in range(0, 4 * WINDOW, 1000):
        density.add("p", 500, at)
        if at >= 30_000:
            read.append(density.shingles("p"))
    assert min(read) >= 300 * 500 * 0.95
    assert max(read) <= 300 * 500 * 1.05


def test_times_before_the_epoch_and_late_ones_count() -> None:
    density = Shown()
    for at in (-WINDOW, -1000, -2000, 0):
        density.add("p", 5, at)
    assert density.shingles("p") == 20


def test_what_is_sent_twice_counts_once_and_every_part_counts() -> None:
    density = PoolDensity(window_ms=WINDOW)
    asked = [prompt("a", "1", 0, NOTHING, part=part, parts=2) for part in range(2)]
    answer = response("a", "1", 0, NOTHING)
    foreign = prompt("b", "1", 0, NOTHING)
    for one in (*asked, answer, foreign) * 3:
        density.add(one, 10)
    assert density.shingles("p") == 40 * 10


def test_what_has_left_the_window_counts_no_more_however_often_it_is_sent() -> None:
    density = PoolDensity(window_ms=WINDOW)
    first = prompt("a", "1", 0, NOTHING)
    for one in (first, prompt("a", "2", 301, NOTHING), first):
        density.add(one, 10)
    assert density.shingles("p") == 10


def test_pools_that_fell_silent_are_forgotten_when_a_new_one_comes() -> None:
    density = Shown()
    for number in range(40):
        for at in range(0, 100_000, 10_000):
            density.add(f"pod-{number}", 100, number * 3_600_000 + at)
        density.add("steady", 1, number * 3_600_000 + 100_000)
        assert len(density.density) <= 3
    assert density.shingles("pod-0") == 0
    assert density.shingles("pod-39") > 0


def test_two_windows_of_silence_are_remembered() -> None:
    density = Shown()
    density.add("quiet", 700, 0)
    density.add("new", 1, 2 * WINDOW)
    assert density.shingles("quiet") == 7000
    density.add("newer", 1, 2 * WINDOW + 1)
    assert density.shingles("quiet") == 0


def test_a_pool_that_lags_behind_the_others_is_not_silent() -> None:
    density = Shown()
    density.add("live", 1, 100 * WINDOW)
    for at in range(0, WINDOW + 1, 30_000):
        density.add("lagging", 100, at)
        density.add("live", 1, 100 * WINDOW + at)
        density.add(f"pod-{at}", 1, at)
    assert density.shingles("lagging") == 1100
