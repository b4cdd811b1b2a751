"""The look-back names who showed a response's text first, and nobody for what anybody may show."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.errors import InputError, UsageError
from detector.finding import Confidence
from detector.kernels.trace import hits, table
from detector.model import Hashes, Role, Sequence, Span
from detector.settings import DetectionSettings
from detector.sketch.shingle import shingle_keys
from detector.trace.candidates import KEPT
from detector.trace.model import Traced
from detector.trace.response import Gathering, Wanted
from detector.trace.scan import Scan
from tests.unit.sequences import join, prompt, response, text

DAY_S = 86_400
NOW_S = 2 * DAY_S
SECRET = text(1, 40)
ANSWER = join(text(2, 30), SECRET, text(3, 30))
SINK = response("b", "sink", NOW_S, ANSWER, end_s=NOW_S + 60)


def traced(
    retained: list[Sequence], sink: Sequence = SINK, *, since_s: int = DAY_S,
    detection: DetectionSettings | None = None, part_tokens: int = 131_072,
) -> Traced:  # fmt: skip
    gathering = Gathering(Wanted("sink"))
    everything = [*retained, sink]
    for one in everything:
        gathering.add(one)
    scan = Scan(
        gathering.response(), detection or DetectionSettings(),
        since_ms=sink.started_at_ms - since_s * 1000, part_tokens=part_tokens,
    )  # fmt: skip
    for one in everything:
        scan.add(one)
    return scan.result()


def names(result: Traced) -> list[tuple[str, str, int]]:
    return [
        (one.party.tenant, one.party.request_id, one.unexplained_tokens) for one in result.sources
    ]


def test_a_source_far_older_than_the_window_is_named_with_its_run() -> None:
    old = prompt("a", "1", NOW_S - 20 * 3_600, join(text(4, 100), SECRET, text(5, 9)))
    result = traced([old, prompt("c", "2", NOW_S - 60, text(6, 500))])
    assert names(result) == [("a", "1", 40)]
    (source,) = result.sources
    (run,) = source.runs
    assert (run.source_start, run.sink_start, run.length, run.unexplained) == (100, 30, 40, 40)
    assert source.confidence is Confidence.HIGH
    assert (result.scanned.sequences, result.scanned.tokens) == (3, 149 + 500 + 100)


def test_what_lies_outside_is_not_searched() -> None:
    others = [
        prompt("a", "too old", NOW_S - DAY_S - 1, SECRET),
        prompt("a", "too late", NOW_S + 60, SECRET),
        prompt("a", "elsewhere", NOW_S - 5, SECRET, pool="q"),
        prompt("a", "other key", NOW_S - 5, SECRET, key_id="another"),
    ]
    result = traced(others)
    assert names(result) == []
    assert result.scanned.other_keys == 1
    assert names(traced([prompt("a", "while it ran", NOW_S + 59, SECRET)])) != []


def test_the_receivers_own_text_names_nobody() -> None:
    source = prompt("a", "1", NOW_S - 100, SECRET)
    assert names(traced([source, prompt("b", "sink", NOW_S, SECRET)])) == []
    assert names(traced([source, prompt("b", "0", NOW_S - 200, SECRET)])) == []
    assert names(traced([source, prompt("b", "9", NOW_S - 50, SECRET)])) == [("a", "1", 40)]


def test_common_text_is_told_apart_from_the_source() -> None:
    source = prompt("a", "1", NOW_S - 100, join(text(2, 30), SECRET))
    stock = [prompt("c", "2", NOW_S - 300, text(2, 30)), prompt("d", "3", NOW_S - 90, text(2, 30))]
    result = traced([source, *stock])
    assert names(result) == [("a", "1", 40 + 9)]  # shingles that only begin in the common text
    assert result.sources[0].runs[0].length == 70
    assert result.explained.common == 21


def test_a_bleed_that_repeats_still_names_its_source() -> None:
    source = prompt("a", "1", NOW_S - 5_000, SECRET)
    victims = [response(f"v{at}", f"v{at}", NOW_S - 4_000 + at, SECRET) for at in range(20)]
    echo = prompt("v0", "next turn", NOW_S - 3_000, SECRET)
    assert names(traced([source, *victims, echo])) == [("a", "1", 40)]
    earlier = response("c", "stock", NOW_S - 6_000, SECRET)
    for retained in ([source, *victims, earlier], [earlier, *victims, source]):
        assert names(traced(retained)) == []  # known before: a stock phrase


def test_of_responses_the_first_is_the_source() -> None:
    shown = [response(name, name, NOW_S - at, SECRET) for name, at in (("x", 90), ("y", 50))]
    assert names(traced(shown)) == [("x", "x", 40)]
    assert names(traced(shown[::-1])) == [("x", "x", 40)]


def test_loops_templates_and_the_same_question_name_nobody() -> None:
    looping = response("b", "sink", NOW_S, np.tile(text(9, 3), 20))
    assert names(traced([prompt("a", "1", NOW_S - 9, looping.token_hashes)], looping)) == []
    template = Span(Role.TEMPLATE, 0, 40)
    assert names(traced([prompt("a", "1", NOW_S - 9, SECRET, spans=(template,))])) == []
    question = text(11, 30)
    asked = prompt("b", "sink", NOW_S, question, spans=(Span(Role.USER, 0, 30),))
    turns = (Span(Role.USER, 0, 30), Span(Role.ASSISTANT, 30, 70))
    same = prompt("a", "1", NOW_S - 9, join(question, SECRET), spans=turns)
    assert names(traced([asked, same])) == []
    other = prompt("a", "1", NOW_S - 9, join(text(12, 30), SECRET), spans=turns)
    assert names(traced([asked, other])) == [("a", "1", 40)]


def test_one_account_may_share() -> None:
    source = prompt("a", "1", NOW_S - 9, SECRET, account="x")
    sink = response("b", "sink", NOW_S, ANSWER, account="x")
    assert names(traced([source], sink)) == []
    inner = [prompt("b", "1", NOW_S - 9, SECRET, session="s1")]
    by_session = DetectionSettings(boundary="session")
    assert names(traced(inner)) == []
    sink = response("b", "sink", NOW_S, ANSWER, session="s2")
    assert names(traced(inner, sink, detection=by_session)) == [("b", "1", 40)]


def test_the_longest_comes_first_and_of_equal_ones_the_latest() -> None:
    retained = [
        prompt("a", "early", NOW_S - 90, SECRET), prompt("a", "late", NOW_S - 80, SECRET),
        prompt("c", "short", NOW_S - 70, text(3, 30)[:15]),
    ]  # fmt: skip
    assert names(traced(retained)) == [("a", "late", 40), ("a", "early", 40), ("c", "short", 15)]


def test_parts_of_long_texts_are_put_together() -> None:
    whole = join(text(20, 150), SECRET, text(21, 10))
    cuts = [whole[:100], whole[91:191], whole[182:]]
    parts = [prompt("a", "1", NOW_S - 9, cut, part=at, parts=3) for at, cut in enumerate(cuts)]
    result = traced(parts, part_tokens=100)
    assert [(one.party.request_id, len(one.runs)) for one in result.sources] == [("1", 1)]
    assert result.sources[0].runs[0].source_start == 150
    halves = (ANSWER[:59], ANSWER[50:])
    first, second = (
        response("b", "sink", NOW_S, half, part=at, parts=2) for at, half in enumerate(halves)
    )
    assert names(traced([prompt("a", "1", NOW_S - 9, SECRET), first], second)) == [("a", "1", 40)]
    with pytest.raises(InputError, match="only 1 of the 2 parts"):
        traced([], second)


def test_of_very_many_sources_the_best_are_kept() -> None:
    crowd = [
        response("a", f"crowd {at}", NOW_S - 20_000 + at, SECRET[:12]) for at in range(3 * KEPT)
    ]
    source = prompt("a", "source", NOW_S - 30_000, SECRET)
    result = traced([source, *crowd])
    assert names(result)[0] == ("a", "source", 40)
    assert len(result.sources) + result.dropped == 3 * KEPT + 1
    assert result.dropped > 0


def test_what_cannot_be_traced_says_why() -> None:
    with pytest.raises(InputError, match="no such request"):
        Gathering(Wanted("sink")).response()
    unread = Gathering(Wanted("sink"))
    unread.add(prompt("b", "sink", 0, text(1, 9)))
    with pytest.raises(InputError, match="no token ids of its response"):
        unread.response()
    twice = Gathering(Wanted("sink"))
    for tenant in ("b", "c"):
        twice.add(response(tenant, "sink", 0, text(1, 9)))
    with pytest.raises(UsageError, match=r"2 responses have this id.*--tenant: b, c"):
        twice.response()
    chosen = Gathering(Wanted("sink", tenant="c"))
    for tenant, at in (("b", 9), ("c", 1), ("c", 5)):
        chosen.add(response(tenant, "sink", at, text(at, 9)))
    assert chosen.response().first.started_at_ms == 5_000


def test_a_short_response_has_nothing_to_trace() -> None:
    short = response("b", "sink", NOW_S, text(1, 9))
    result = traced([prompt("a", "1", NOW_S - 9, text(1, 9))], short)
    assert (result.sources, result.response_tokens) == ((), 9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 60), st.integers(0, 200), st.integers(2, 9))
def test_the_table_finds_what_a_set_finds(seed: int, few: int, many: int, words: int) -> None:
    draw = np.random.default_rng(seed)
    ours: Hashes = draw.integers(0, words, few, np.uint32)
    theirs: Hashes = draw.integers(0, words, many, np.uint32)
    keys = shingle_keys(ours)
    use = draw.random(len(keys)) < 0.8
    stored, at = hits(theirs, *table(keys, use))
    wanted: dict[int, int] = {}
    for place, key in enumerate(keys.tolist()):
        if use[place]:
            wanted.setdefault(key, place)
    expected = [
        (place, wanted[key])
        for place, key in enumerate(shingle_keys(theirs).tolist())
        if key in wanted
    ]
    assert list(zip(stored.tolist(), at.tolist(), strict=True)) == expected
