"""Memory that grows is told of each life by itself: no start hides a leak or makes one up."""

from collections.abc import Callable, Iterator

import pytest

from tests.cluster.memory import (
    JUDGED_S,
    LONG_S,
    SETTLED_S,
    SLACK_BYTES,
    Point,
    lives,
    table,
    wrong,
)

MIB = 1 << 20
EACH_S = 15.0
LASTS_S = SETTLED_S + 2 * JUDGED_S


def points(
    pid: int, held: Callable[[float], float], *, begin_s: float = 0.0, lasts_s: float = LASTS_S
) -> Iterator[Point]:
    """Yield what one life held, by the seconds since its start."""
    for number in range(int(lasts_s / EACH_S) + 1):
        age_s = number * EACH_S
        yield Point(begin_s + age_s, pid, int(held(age_s)))


def flat(mib: float) -> Callable[[float], float]:
    """Return a level with the ups and downs of an allocator."""
    return lambda age_s: mib * MIB + SLACK_BYTES / 4 * (age_s % 60 / 60)


def leak(mib_each_minute: float) -> Callable[[float], float]:
    """Return a growth without end."""
    return lambda age_s: 100 * MIB + mib_each_minute * MIB * age_s / 60


def fills(age_s: float) -> float:
    """Return a growth that ends once a window is full."""
    return 100 * MIB + 400 * MIB * min(age_s / SETTLED_S, 1.0)


@pytest.mark.parametrize(
    ("held", "grows"), [(leak(10), True), (leak(2), False), (flat(100), False), (fills, False)]
)
def test_a_life_that_leaks_is_told_from_one_that_fills_its_window(
    held: Callable[[float], float], grows: bool
) -> None:
    (life,) = lives(list(points(1, held)))
    assert life.judged_s == pytest.approx(2 * JUDGED_S)
    assert life.grows is grows


def test_a_start_after_it_hides_no_leak() -> None:
    again = list(points(2, flat(100), begin_s=LASTS_S + 60))
    found = {"worker-0": lives([*points(1, leak(10)), *again])}
    assert wrong(found, ["worker-0"], seconds=LONG_S) == ["worker-0 grows"]


def test_starts_of_other_sizes_are_no_growth() -> None:
    first = points(1, flat(100))
    found = {"worker-0": lives([*first, *points(2, flat(900), begin_s=LASTS_S + 60)])}
    assert wrong(found, ["worker-0"], seconds=LONG_S) == []


def test_lives_that_are_too_short_are_not_judged_and_said_to_be() -> None:
    short_s = SETTLED_S + JUDGED_S - EACH_S
    many = [
        point
        for pid in range(5)
        for point in points(pid, leak(10), begin_s=pid * 2 * short_s, lasts_s=short_s)
    ]
    found = {"worker-0": lives(many), "worker-1": lives(list(points(9, flat(100))))}
    assert wrong(found, found, seconds=LONG_S - 1) == []
    assert wrong(found, [*found, "gone"], seconds=LONG_S) == [
        "no life of worker-0 was long enough to judge its memory",
        "no life of gone was long enough to judge its memory",
    ]
    assert table(found)[2:] == [
        f"| worker-0 | 5 | {short_s:.0f} | too short | 149 | 249 |",
        f"| worker-1 | 1 | {LASTS_S:.0f} | {2 * JUDGED_S:.0f} | 102 | 102 |",
    ]
