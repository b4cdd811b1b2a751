"""A bleed that happens again and again stays found, and names its origin, not its relays."""

from collections.abc import Callable

import pytest

from detector.index.taint import TaintedShingles
from detector.index.tenant_table import parties
from detector.model import Sequence
from detector.settings import DetectionSettings
from detector.sketch.shingle import shingle_keys
from tests.unit.sequences import LEARNED, detector, found, join, pairs, prompt, response, text

SECRET = text(1, 40)
VICTIMS = [f"v{number}" for number in range(16)]
DAY_S = 86_400


def own(number: int) -> Callable[[int], Sequence]:
    """Return a maker of prompts of the origin, which sends its conversation again and again."""
    return lambda at: prompt("origin", f"o{at}", at, join(text(100 + number, 20), SECRET))


def repeated(*, echo: bool, every_s: int = 60) -> list[Sequence]:
    """One content bleeds into 16 tenants; with `echo` each sends it back in its next prompt."""
    traffic = []
    for number, victim in enumerate(VICTIMS):
        at = number * every_s
        traffic.append(own(number)(at))
        bled = join(text(200 + number, 15), SECRET[: 30 + number % 10], text(300 + number, 5))
        traffic += [
            prompt(victim, f"{victim}-1", at + 5, text(400 + number, 20)),
            response(victim, f"{victim}-1", at + 5, bled),
        ]
        if echo:
            history = join(text(400 + number, 20), bled, text(500 + number, 20))
            traffic.append(prompt(victim, f"{victim}-2", at + 20, history))
    return traffic


@pytest.mark.parametrize("echo", [False, True])
@pytest.mark.parametrize("every_s", [15, 60, 250])
def test_every_repetition_is_found_and_names_the_origin(echo: bool, every_s: int) -> None:
    wanted = {(f"{victim}-1", "origin") for victim in VICTIMS}
    assert pairs(found(repeated(echo=echo, every_s=every_s))) == wanted


@pytest.mark.parametrize("echo", [False, True])
def test_every_repetition_is_found_by_a_sampled_index_too(echo: bool) -> None:
    sampled = DetectionSettings.model_validate(
        {"commonness": LEARNED, "index": {"sampling": "winnow", "winnow_window": 8}}
    )
    wanted = {(f"{victim}-1", "origin") for victim in VICTIMS}
    assert pairs(found(repeated(echo=echo, every_s=60), by=detector(sampled))) == wanted


def test_the_same_victim_is_found_again_after_its_own_echo() -> None:
    traffic = []
    for turn in range(8):
        at = turn * 1200
        traffic += [
            prompt("origin", f"o{turn}", at, SECRET),
            response("v", f"v{turn}", at + 10, SECRET),
            prompt("v", f"echo{turn}", at + 30, SECRET),
        ]
    assert pairs(found(traffic)) == {(f"v{turn}", "origin") for turn in range(8)}


def test_without_a_bleed_the_same_traffic_becomes_common() -> None:
    """The control: what three tenants send of their own accord explains the fourth's answer."""
    own_accord = [prompt(tenant, tenant, n, SECRET) for n, tenant in enumerate("abc")]
    assert not found([*own_accord, response("d", "d", 10, SECRET)])


def test_a_relay_is_left_out_while_the_origin_is_there() -> None:
    source, first = prompt("origin", "o", 0, SECRET), response("v", "1", 5, SECRET)
    echo = prompt("v", "2", 250, SECRET)
    soon = response("w", "3", 280, SECRET)
    assert pairs(found([source, first, echo, soon])) == {("1", "origin"), ("3", "origin")}


def test_content_of_the_relay_itself_is_not_left_out() -> None:
    mine = text(2, 20)
    traffic = [
        prompt("origin", "o", 0, SECRET), response("v", "1", 5, SECRET),
        prompt("v", "2", 10, join(SECRET, mine)), response("w", "3", 20, join(SECRET, mine)),
    ]  # fmt: skip
    assert pairs(found(traffic)) == {("1", "origin"), ("3", "origin"), ("3", "v")}


def test_a_sink_that_is_judged_late_has_taught_nothing() -> None:
    """B's response is learned before its source, A's response, has ended."""
    sink = response("b", "2", 10, SECRET, end_s=20)
    source = response("a", "1", 5, SECRET, end_s=30)
    again = [prompt("a", "3", 40, SECRET), response("c", "4", 50, SECRET)]
    assert pairs(found([sink, source, *again])) == {("2", "a"), ("4", "a")}


def test_unexplained_shingles_are_counted_and_explained_ones_still_learn() -> None:
    by = detector()
    found([prompt("a", "1", 0, SECRET), response("b", "2", 5, join(SECRET, text(2, 30)))], by=by)
    assert by.stats.unexplained_shingles == len(shingle_keys(SECRET))
    rest = text(2, 30)
    assert not found([prompt("a", "3", 9, rest), response("c", "4", 10, rest)], by=by)
    assert by.explained["common"] >= len(shingle_keys(rest))


def test_the_first_origin_stays_and_the_rest_is_untouched() -> None:
    tainted = TaintedShingles(horizon_ms=DAY_S * 1000)
    assert tainted.is_empty
    keys = shingle_keys(text(1, 5000))
    tainted.add(keys[:1000], origin=7, now_ms=0)
    tainted.add(keys[500:1500], origin=8, now_ms=1000)
    assert not tainted.is_empty
    assert tainted.contains(keys).tolist() == [True] * 1500 + [False] * (len(keys) - 1500)
    origins = parties(tainted.origins(keys[:1500]))
    assert (origins[:1000] == 7).any(axis=1).all()
    assert (origins[1000:] == 8).any(axis=1).all()
    assert not (origins[:1000] == 8).any()


def test_a_bleed_that_goes_on_for_days_stays_tainted() -> None:
    tainted = TaintedShingles(horizon_ms=DAY_S * 1000)
    keys = shingle_keys(SECRET)
    for hours in range(0, 240, 6):
        tainted.add(keys, origin=7, now_ms=hours * 3_600_000)
        assert tainted.contains(keys).all(), hours
        assert (parties(tainted.origins(keys)) == 7).any(axis=1).all()
        others = shingle_keys(text(1000 + hours, 30))
        tainted.add(others, origin=9, now_ms=hours * 3_600_000)
