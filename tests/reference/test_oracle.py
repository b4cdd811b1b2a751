"""The oracle on cases small enough to check by eye."""

from typing import Any

import numpy as np

from detector.model import EngineId, Kind, PoolId, RequestId, Role, Sequence, Span, TenantId
from tests.reference.oracle import Verdict, judge, longest_run

SECRET = list(range(100, 130))
HELD: frozenset[str] = frozenset()


def make(
    tenant: str, request: str, kind: Kind, start: int, ids: list[int], **more: Any
) -> Sequence:
    return Sequence(
        tenant=TenantId(tenant), request_id=RequestId(request), kv_pool=PoolId("p"),
        engine=EngineId("e"), model="m", kind=kind, started_at_ms=start,
        ended_at_ms=more.pop("end", start + 1000 if kind is Kind.RESPONSE else start),
        token_hashes=np.array(ids, np.uint32), **more,
    )  # fmt: skip


def prompt(tenant: str, request: str, start: int, ids: list[int], **more: Any) -> Sequence:
    return make(tenant, request, Kind.PROMPT, start, ids, **more)


def response(tenant: str, request: str, start: int, ids: list[int], **more: Any) -> Sequence:
    return make(tenant, request, Kind.RESPONSE, start, ids, **more)


def test_a_foreign_prompt_in_a_response_is_found() -> None:
    traffic = [prompt("a", "1", 0, SECRET), response("b", "2", 5000, [1, 2, *SECRET[5:25], 3])]
    assert judge(traffic) == {("2", "a"): Verdict(20, HELD)}


def test_prompt_against_prompt_and_old_sources_are_not() -> None:
    assert not judge([prompt("a", "1", 0, SECRET), prompt("b", "2", 5000, SECRET)])
    assert not judge([prompt("a", "1", 0, SECRET), response("b", "2", 300_001, SECRET)])
    assert judge([prompt("a", "1", 0, SECRET), response("b", "2", 300_000, SECRET)])


def test_a_source_that_starts_while_the_sink_decodes_counts() -> None:
    sink = response("b", "2", 0, SECRET, end=9000)
    assert judge([sink, prompt("a", "1", 5000, SECRET)]) == {("2", "a"): Verdict(30, HELD)}
    late = judge([sink, response("a", "1", 8000, SECRET, end=20_000)])
    assert ("2", "a") in late
    assert not judge([sink, prompt("a", "1", 9000, SECRET)])


def test_a_third_tenant_makes_it_common() -> None:
    traffic = [prompt("c", "0", 0, SECRET), prompt("a", "1", 10, SECRET)]
    assert not judge([*traffic, response("b", "2", 5000, SECRET)])


def test_a_repeated_bleed_does_not_explain_itself() -> None:
    victims = [response(t, t, 5000 * n, SECRET) for n, t in enumerate("bcdef", start=1)]
    echo = prompt("b", "b2", 7000, SECRET)
    found = judge([prompt("a", "1", 0, SECRET), *victims, echo])
    assert {("b", "a"), ("c", "a"), ("d", "a"), ("e", "a"), ("f", "a")} <= set(found)


def test_own_prompt_history_and_question_explain() -> None:
    source = prompt("a", "1", 1000, SECRET)
    assert not judge([source, prompt("b", "2", 5000, SECRET), response("b", "2", 5000, SECRET)])
    assert not judge(
        [response("b", "0", 0, SECRET, end=500), source, response("b", "2", 5000, SECRET)]
    )
    user = (Span(Role.USER, 0, 12),)
    asked = [
        prompt(t, r, s, list(range(12)), spans=user)
        for t, r, s in (("a", "1", 0), ("b", "2", 2000))
    ]
    answers = [response("a", "1", 0, SECRET), response("b", "2", 2000, SECRET)]
    assert not judge([*asked, *answers])
    assert judge(answers)


def test_the_question_never_excuses_a_system_prompt() -> None:
    ids = [*SECRET, *range(12)]
    spans = (Span(Role.SYSTEM, 0, 30), Span(Role.USER, 30, 42))
    asked = [prompt("a", "1", 0, ids, spans=spans)]
    asked += [prompt("b", "2", 2000, list(range(12)), spans=(Span(Role.USER, 0, 12),))]
    assert judge([*asked, response("b", "2", 2000, SECRET)]) == {("2", "a"): Verdict(30, HELD)}


def test_an_earlier_answer_said_again_belongs_to_the_question_that_it_answered() -> None:
    user = Span(Role.USER, 0, 12)
    asked = prompt("b", "2", 2000, list(range(12)), spans=(user,))
    turns = {
        (Role.USER, Role.ASSISTANT): [*range(12), *SECRET],
        (Role.SYSTEM, Role.USER, Role.ASSISTANT): [*SECRET, *range(12), *SECRET],
    }
    for roles, ids in turns.items():
        spans, at = [], 0
        for role in roles:
            length = 12 if role is Role.USER else len(SECRET)
            spans.append(Span(role, at, at + length))
            at += length
        last = Span(Role.USER, at, at + 12)
        conversation = prompt("a", "1", 0, [*ids, *range(50, 62)], spans=(*spans, last))
        again = [conversation, response("a", "1", 0, SECRET)]
        found = judge([*again, asked, response("b", "2", 2000, SECRET)])
        assert found == ({("2", "a"): Verdict(30, HELD)} if Role.SYSTEM in roles else {})


def test_template_account_cache_and_siblings_explain() -> None:
    whole = (Span(Role.TEMPLATE, 0, 30),)
    assert not judge([prompt("a", "1", 0, SECRET, spans=whole), response("b", "2", 1, SECRET)])
    a, b = prompt("a", "1", 0, SECRET, account="x"), response("b", "2", 1, SECRET, account="x")
    assert not judge([a, b])
    source = prompt("a", "1", 0, SECRET)
    assert not judge([source, response("b", "2", 1, SECRET, gateway_cache_hit=True)])
    assert not judge([source, response("b", "2", 1, SECRET, parent_id=RequestId("1"))])


def test_low_complexity_never_counts() -> None:
    assert not judge(
        [prompt("a", "1", 0, [1, 2, 3, 4, 5] * 6), response("b", "2", 1, [1, 2, 3, 4, 5] * 6)]
    )


def test_gaps_are_bridged_but_do_not_count() -> None:
    assert longest_run([(0, 50), (14, 64)], bridge=4) == 20
    assert longest_run([(0, 50), (15, 65)], bridge=4) == 10
    assert longest_run([(0, 50), (5, 56)], bridge=4) == 10
    assert longest_run([(0, 50), (1, 51), (2, 52)], bridge=4) == 12
