"""Which responses of different pools are told to be one, judged on sketches made by a detector."""

from typing import Any

import msgspec
import numpy as np
import pytest

from detector.index.band_ranges import BandRanges
from detector.index.response_sketch import ResponseSketch, numbers
from detector.index.shared_memory import SharedMemory
from detector.match.across_pools import AcrossPools
from detector.match.allow_list import AllowList
from detector.match.response_sketches import ResponseSketches
from detector.model import Sequence
from detector.pipeline import Detector
from detector.sketch.shingle import shingle_keys
from detector.sketch.tag_keys import TagKeys
from tests.unit.sequences import SETTINGS, join, prompt, response, text
from tests.unit.sharing import TAG_KEY

KEYS = TagKeys(TAG_KEY)
BOTH, ONE, OTHER = text(1, 150), text(2, 125), text(3, 125)
ALL = join(BOTH, ONE, OTHER)


def sketches_of(*sequences: Sequence) -> list[ResponseSketch]:
    """Return the sketches of responses, as the worker of their pool makes them."""
    made = ResponseSketches(SETTINGS.copies, KEYS)
    detector = Detector(SETTINGS, memory=SharedMemory(SETTINGS.commonness, KEYS), sketches=made)
    for one in sequences:
        detector.observe(one)
    return made.take()


def answer(tenant: str, at_s: float, tokens: Any = ALL, **more: Any) -> ResponseSketch:
    """Return the sketch of a response in a pool of the tenant's own, unless told otherwise."""
    given = {"pool": tenant, **more}
    (one,) = sketches_of(response(tenant, f"{tenant}{at_s}", at_s, tokens, **given))
    return one


def told(*sketches: ResponseSketch) -> set[tuple[str, str]]:
    """Return (sink, source) of what is told when the sketches come in this order."""
    ranges = BandRanges(keep_ms=SETTINGS.window.keep_ms, memory_bytes=2**24)
    ranges.own(0)
    judge = AcrossPools(
        SETTINGS.copies, SETTINGS.filter, ranges=ranges, window_ms=SETTINGS.window.length_ms
    )
    found = set()
    for one in sketches:
        if ranges.add(0, one):
            found |= {(each.sink.tenant, each.sources[0].tenant) for each in judge.judge(one)}
    return found


def test_a_response_of_another_pool_is_told_in_either_order() -> None:
    assert told(answer("a", 0), answer("b", 10)) == {("b", "a")}
    assert told(answer("b", 10), answer("a", 0)) == {("b", "a")}


def test_a_copy_inside_one_pool_is_left_to_its_detector() -> None:
    assert told(answer("a", 0, pool="p"), answer("b", 10, pool="p")) == set()
    elsewhere = answer("a", 5, pool="q")
    assert told(answer("a", 0, pool="p"), elsewhere, answer("b", 10, pool="p")) == set()


def test_a_third_party_with_the_receivers_answer_makes_it_stock() -> None:
    """The third answer is like the second, not like the first."""
    source = answer("a", 0, join(BOTH, ONE))
    third = answer("c", 5, join(BOTH, OTHER), gateway_cache_hit=True)
    assert told(source, answer("b", 10)) == {("b", "a")}
    assert told(source, third, answer("b", 10)) == set()


def test_a_third_party_with_the_sources_answer_makes_it_stock() -> None:
    sink = answer("b", 10, join(BOTH, ONE))
    third = answer("c", 5, join(BOTH, OTHER), gateway_cache_hit=True)
    assert told(answer("a", 0), sink) == {("b", "a")}
    assert told(answer("a", 0), third, sink) == set()


def test_the_receivers_own_earlier_answer_explains_it() -> None:
    source = answer("a", 0, gateway_cache_hit=True)
    assert told(source, answer("b", 10)) == {("b", "a")}
    assert told(answer("b", -20), source, answer("b", 10)) == set()


def test_what_bled_is_no_source_and_makes_nothing_stock() -> None:
    three = (answer("a", 0), answer("b", 10), answer("c", 20))
    assert told(*three) == {("b", "a"), ("c", "a")}


def test_too_little_unexplained_is_nothing() -> None:
    source, sink = answer("a", 0), answer("b", 10)
    assert told(source, msgspec.structs.replace(sink, unexplained=127)) == set()
    assert told(source, msgspec.structs.replace(sink, unexplained=128)) == {("b", "a")}
    quarter = numbers(sink.values)[:-31].astype("<u4").tobytes()
    assert told(source, msgspec.structs.replace(sink, explained=quarter)) == set()


@pytest.mark.parametrize(("share", "known"), [(0.0, 0), (0.5, 190), (1.0, 391)])
def test_the_receivers_own_prompt_is_taken_out(share: float, known: int) -> None:
    quoted = ALL[: round(len(ALL) * share)]
    (one,) = sketches_of(
        prompt("b", "b1", 0, join(quoted, text(4, 20)) if share else text(4, 20)),
        response("b", "b1", 0, ALL),
    )
    assert one.bigrams == len(ALL) - 1
    assert one.bigrams - one.unexplained == pytest.approx(known, abs=10)
    assert set(numbers(one.explained)) <= set(numbers(one.values))


def test_what_three_parties_have_shown_is_taken_out() -> None:
    shown = [prompt(name, name, at, ALL) for at, name in enumerate("xyz")]
    *_, one = sketches_of(*shown, response("b", "b1", 9, ALL))
    assert one.unexplained == 0


def test_allowed_text_is_taken_out() -> None:
    made = ResponseSketches(SETTINGS.copies, KEYS)
    detector = Detector(SETTINGS, sketches=made, allowed=AllowList(shingle_keys(ALL)))
    detector.observe(response("b", "b1", 0, ALL))
    assert [one.unexplained for one in made.take()] == [0]


def test_prompts_and_short_responses_have_no_sketch() -> None:
    repeated = np.tile(text(5, 40), 10)
    assert (
        sketches_of(
            prompt("a", "a1", 0, ALL),
            response("a", "a1", 0, ALL[:128]),
            response("a", "a2", 0, repeated),
        )
        == []
    )
