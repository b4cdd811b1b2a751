"""Every reason: the bleed is found without it, and explained, and counted, with it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from detector.match.allow_list import AllowList
from detector.match.reasons import CODES, REASONS, UNEXPLAINED, Reason
from detector.model import RequestId, Role, Sequence, Span
from detector.pipeline import Detector
from detector.settings import DetectionSettings
from detector.sketch.shingle import Keys, shingle_keys
from tests.unit.sequences import LEARNED, detector, found, join, pairs, prompt, response, text

SECRET = text(1, 30)
SHINGLES = 21
QUESTION, OTHER_QUESTION = text(2, 24), text(3, 24)
SYSTEM = text(4, 12)

Traffic = list[Sequence]


def bleed(**more: Any) -> Traffic:
    """A's prompt in B's response; `more` holds for both requests."""
    return [prompt("a", "1", 0, SECRET, **more), response("b", "2", 10, SECRET, **more)]


def spans(*pieces: tuple[Role, int]) -> tuple[Span, ...]:
    """Return spans that follow one another, from roles and lengths."""
    at = 0
    made = []
    for role, length in pieces:
        made.append(Span(role, at, at + length))
        at += length
    return tuple(made)


def asked(tenant: str, request: str, at_s: float, question: np.ndarray = QUESTION) -> Sequence:
    """A prompt that is a system prompt of the tenant's own and a user turn."""
    own = text(ord(tenant), 12)
    roles = spans((Role.SYSTEM, 12), (Role.USER, len(question)))
    return prompt(tenant, request, at_s, join(own, question), spans=roles)


def answers(question_b: np.ndarray) -> Traffic:
    """A and B get the same answer, B to a question of its own choice."""
    return [
        asked("a", "1", 0), response("a", "1", 0, SECRET, end_s=5),
        asked("b", "2", 10, question_b), response("b", "2", 10, SECRET),
    ]  # fmt: skip


def history(question_b: np.ndarray) -> Traffic:
    """A's client sends question and answer back as history, then goes on to something else."""
    roles = spans((Role.USER, 24), (Role.ASSISTANT, 30), (Role.USER, 24))
    turns = join(QUESTION, SECRET, OTHER_QUESTION)
    return [
        prompt("a", "1", 0, turns, spans=roles),
        asked("b", "2", 10, question_b), response("b", "2", 10, SECRET),
    ]  # fmt: skip


def said_again(question_b: np.ndarray) -> Traffic:
    """A's later answer, to something else, repeats its earlier one; the client sent that back."""
    turns = history(question_b)
    return [turns[0], response("a", "1", 0, join(text(9, 15), SECRET), end_s=5), *turns[1:]]


def template(role: Role) -> Traffic:
    roles = spans((role, 30), (Role.USER, 5))
    return [
        prompt("a", "1", 0, join(SECRET, text(9, 5)), spans=roles),
        response("b", "2", 10, SECRET),
    ]


def family(parent_a: str | None, parent_b: str | None) -> Traffic:
    source, sink = bleed()
    source.parent_id = None if parent_a is None else RequestId(parent_a)
    sink.parent_id = None if parent_b is None else RequestId(parent_b)
    return [source, sink]


CASES: dict[str, tuple[Reason, Traffic, Traffic]] = {
    "own prompt": (Reason.OWN_PROMPT, [*bleed(), prompt("b", "2", 10, SECRET)], bleed()),
    "own earlier prompt": (
        Reason.OWN_PROMPT, [*bleed(), prompt("b", "0", 5, SECRET)],
        [*bleed(), prompt("b", "0", 5, SECRET, pool="q")],
    ),
    "common, in any pool": (
        Reason.COMMON, [*bleed(), prompt("c", "0", 5, SECRET, pool="q")],
        [*bleed(), prompt("a", "0", 5, SECRET, pool="q")],
    ),
    "own history, in any pool": (
        Reason.OWN_HISTORY, [*bleed(), prompt("b", "0", -900, SECRET, pool="q")],
        [*bleed(), prompt("b", "0", 1, SECRET, pool="q")],
    ),
    "same question": (Reason.SAME_QUESTION, answers(QUESTION), answers(OTHER_QUESTION)),
    "nearly the same question": (
        Reason.SAME_QUESTION, answers(join(QUESTION, text(7, 9))),
        answers(join(QUESTION[:15], text(7, 9))),
    ),
    "half of the same question": (
        Reason.SAME_QUESTION, answers(join(QUESTION[:13], text(7, 4))),
        answers(join(QUESTION[:12], text(7, 5))),
    ),
    "same question in the history": (
        Reason.SAME_QUESTION, history(QUESTION), history(text(8, 24)),
    ),
    "same question, its answer said again later": (
        Reason.SAME_QUESTION, said_again(QUESTION), said_again(text(8, 24)),
    ),
    "template": (Reason.TEMPLATE, template(Role.TEMPLATE), template(Role.SYSTEM)),
    "same account": (Reason.SAME_ACCOUNT, bleed(account="x"), bleed()),
    "gateway cache": (Reason.GATEWAY_CACHE, bleed(gateway_cache_hit=True), bleed()),
    "retry of the source": (Reason.SIBLING, family(None, "1"), family(None, "9")),
    "source is the retry": (Reason.SIBLING, family("2", None), family("9", None)),
    "siblings": (Reason.SIBLING, family("p", "p"), family("p", "q")),
}  # fmt: skip


@pytest.mark.parametrize(("reason", "with_it", "without"), CASES.values(), ids=CASES)
def test_a_reason_explains_and_nothing_less_does(
    reason: Reason, with_it: Traffic, without: Traffic
) -> None:
    assert pairs(found(without)) == {("2", "a")}
    by = detector()
    assert not found(with_it, by=by)
    assert by.explained[reason.value] >= SHINGLES


@pytest.mark.parametrize("reason", [Reason.TEMPLATE, Reason.SAME_ACCOUNT, Reason.ALLOW_LIST])
def test_each_matched_shingle_is_counted_once(reason: Reason) -> None:
    traffic = bleed(account="x") if reason is Reason.SAME_ACCOUNT else template(Role.TEMPLATE)
    allowed = AllowList(shingle_keys(SECRET)) if reason is Reason.ALLOW_LIST else None
    by = detector(allowed=allowed)
    found(bleed() if allowed is not None else traffic, by=by)
    assert by.explained == {reason.value: SHINGLES}


def test_what_is_explained_of_a_pair_that_is_found_is_counted_too() -> None:
    source, sink = bleed(gateway_cache_hit=False)
    source.spans = (Span(Role.TEMPLATE, 0, 1),)
    by = detector(allowed=AllowList(shingle_keys(SECRET[20:])))
    (finding,) = found([source, sink], by=by)
    assert finding.evidence.reasons == {"template": 1, "allow_list": 1}
    assert by.explained == finding.evidence.reasons
    assert finding.evidence.unexplained_tokens == 28


def test_an_allow_list_explains_its_own_shingles_only() -> None:
    def with_list(allowed: Keys) -> Detector:
        return detector(allowed=AllowList(allowed))

    assert not found(bleed(), by=with_list(shingle_keys(SECRET)))
    assert pairs(found(bleed(), by=with_list(shingle_keys(SECRET[:19])))) == {("2", "a")}
    assert pairs(found(bleed(), by=with_list(shingle_keys(text(5, 30))))) == {("2", "a")}


def test_a_question_never_excuses_a_system_prompt_or_tool_output() -> None:
    for role in (Role.SYSTEM, Role.TOOL):
        roles = spans((role, 30), (Role.USER, 24))
        traffic = [
            prompt("a", "1", 0, join(SECRET, QUESTION), spans=roles),
            asked("b", "2", 10), response("b", "2", 10, SECRET),
        ]  # fmt: skip
        assert pairs(found(traffic)) == {("2", "a")}, role


def test_an_answer_that_repeats_a_system_prompt_is_not_excused_by_an_earlier_question() -> None:
    """B asked what A had asked before; what A's system prompt says was not the answer."""
    roles = spans((Role.SYSTEM, 30), (Role.USER, 24), (Role.ASSISTANT, 30), (Role.USER, 24))
    turns = join(SECRET, QUESTION, SECRET, OTHER_QUESTION)
    traffic = [
        prompt("a", "1", 0, turns, spans=roles), response("a", "1", 0, SECRET, end_s=5),
        asked("b", "2", 10), response("b", "2", 10, SECRET),
    ]  # fmt: skip
    by = detector()
    assert pairs(found(traffic, by=by)) == {("2", "a")}
    assert Reason.SAME_QUESTION.value not in by.explained


def test_the_question_that_was_answered_counts_not_an_earlier_one() -> None:
    """B asked A's question two turns ago; what it asks now is something else."""
    roles = spans((Role.USER, 24), (Role.USER, 24))
    later = prompt("b", "2", 10, join(QUESTION, OTHER_QUESTION), spans=roles)
    traffic = [*answers(QUESTION)[:2], later, response("b", "2", 10, SECRET)]
    assert pairs(found(traffic)) == {("2", "a")}


def test_a_later_prompt_of_the_receiver_explains_nothing() -> None:
    """The next chat turn echoes the bleed; that is its effect, not its cause."""
    late_source = response("a", "1", 9, SECRET, end_s=30)
    sink = response("b", "2", 10, SECRET, end_s=20)
    echo = prompt("b", "3", 25, SECRET)
    assert ("2", "a") in pairs(found([sink, echo, late_source]))


def test_what_the_receiver_taught_itself_is_not_its_history() -> None:
    """The source arrives too late for its place; by then the sink's own response is learned."""
    sink = response("b", "2", 10, SECRET, end_s=60)
    late = prompt("a", "1", 20, SECRET)
    by = detector()
    assert not by.observe(sink)
    assert pairs(by.observe(late)) == {("2", "a")}


@pytest.mark.parametrize("kind", [prompt, response])
def test_the_past_teaches_what_is_common_and_what_the_receiver_had(
    kind: Callable[..., Sequence],
) -> None:
    for tenant, reason in (("c", Reason.COMMON), ("b", Reason.OWN_HISTORY)):
        by = detector()
        by.warm(kind(tenant, "0", -50_000, SECRET))
        assert not found(bleed(), by=by)
        assert by.explained == {reason.value: SHINGLES}
    for days in (-3, -2):
        by.warm(kind("c", "0", days * 86_400, text(6, 30)))
    assert by.learning is False


def test_a_prompt_that_has_left_the_window_explains_no_more() -> None:
    """It echoed an earlier bleed, so the memory does not hold it either."""
    by = detector()
    first = [*bleed(), prompt("b", "3", 20, SECRET)]
    assert pairs(found(first, by=by)) == {("2", "a")}
    again = [prompt("a", "4", 2000, SECRET), response("b", "5", 2010, SECRET)]
    assert pairs(found(again, by=by)) == {("5", "a")}


def test_low_complexity_is_never_overlap() -> None:
    five = np.resize(text(1, 5), 60)
    assert not found([prompt("a", "1", 0, five), response("b", "2", 10, five)])
    six = np.resize(text(1, 6), 60)
    assert pairs(found([prompt("a", "1", 0, six), response("b", "2", 10, six)])) == {("2", "a")}


def test_the_isolation_boundary_decides_who_is_foreign() -> None:
    traffic = [
        prompt("a", "1", 0, SECRET, end_user="u", session="s", account="x"),
        response("a", "2", 10, SECRET, end_user="v", session="s", account="x"),
    ]
    wanted = {"tenant": 0, "end_user": 1, "session": 0, "account": 0}
    for boundary, count in wanted.items():
        own = DetectionSettings.model_validate({"commonness": LEARNED, "boundary": boundary})
        traffic[1].account = "x" if boundary == "account" else None
        assert len(found(traffic, by=detector(own))) == count, boundary


def test_every_reason_has_a_case_and_a_code() -> None:
    assert {reason for reason, *_ in CASES.values()} | {Reason.ALLOW_LIST} == set(Reason)
    assert {code: reason for reason, code in CODES.items()} == REASONS
    assert UNEXPLAINED not in REASONS
