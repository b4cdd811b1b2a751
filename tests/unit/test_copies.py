"""Edited copies of whole responses, in which no run of tokens is left, and what explains them."""

from typing import Any

import msgspec
import numpy as np
import pytest

from detector.finding import Finding
from detector.index.copies import DOCUMENT_BYTES, CopyIndex
from detector.index.sequences import SequenceStore
from detector.match.allow_list import AllowList
from detector.model import Hashes, Role, Span
from detector.settings import CopySettings, DetectionSettings
from tests.unit.sequences import LEARNED, detector, found, join, prompt, response, text

WHOLE = text(1, 600)


def every(step: int, tokens: Hashes = WHOLE, *, name: int = 77) -> Hashes:
    """Return a copy in which every `step`-th token is another one."""
    copy = tokens.copy()
    at = np.arange(name % step, len(tokens), step)
    copy[at] = text(name, len(at))
    return copy


def told(findings: list[Finding]) -> list[tuple[str, str, str, str]]:
    """Return (rule, sink, source, confidence) of each finding."""
    return [
        (one.rule, one.sink.request_id, one.source.request_id, one.confidence.value)
        for one in findings
    ]


COPIED = ("BW003", "2", "1", "medium")


def pair(copy: Hashes, **more: Any) -> list[Any]:
    return [response("a", "1", 0, WHOLE), response("b", "2", 5, copy, **more)]


@pytest.mark.parametrize("step", [6, 8, 10])
def test_a_copy_with_no_run_left_is_found_and_is_medium(step: int) -> None:
    (finding,) = found(pair(every(step)))
    assert told([finding]) == [COPIED]
    assert finding.evidence.runs == ()
    assert finding.evidence.similarity is not None
    assert finding.evidence.similarity == pytest.approx((1 - 2 / step) / (1 + 2 / step), abs=0.02)
    share = finding.evidence.matched_tokens / len(WHOLE)
    assert share == pytest.approx(1 - 1 / step, abs=0.01)
    assert "edited copy" in finding.explanation


def test_insertions_leave_a_copy_too() -> None:
    at = np.arange(0, len(WHOLE), 6)
    assert told(found(pair(np.insert(WHOLE, at, text(5, len(at)))))) == [COPIED]


def test_a_copy_with_runs_is_told_by_its_runs() -> None:
    (finding,) = found(pair(every(30)))
    assert told([finding]) == [("BW003", "2", "1", "high")]
    assert finding.evidence.runs
    assert finding.evidence.similarity is not None


def test_what_is_less_alike_or_too_short_is_no_copy() -> None:
    assert found(pair(every(4))) == []
    assert found([response("a", "1", 0, WHOLE[:120]), response("b", "2", 5, every(8)[:120])]) == []
    repeated = np.tile(text(3, 100), 8)
    assert found(pair(every(8, repeated))) == []


def test_only_another_party_of_the_pool_is_a_source() -> None:
    same = [response("a", "1", 0, WHOLE), response("a", "2", 5, every(8))]
    apart = [response("a", "1", 0, WHOLE), response("b", "2", 5, every(8), pool="q")]
    asked = [prompt("a", "1", 0, WHOLE), response("b", "2", 5, every(8))]
    assert found(same) == found(apart) == found(asked) == []


def test_the_window_is_five_minutes_of_starts() -> None:
    late = [response("a", "1", 0, WHOLE), response("b", "2", 301, every(8))]
    assert found(late) == []
    late[1] = response("b", "2", 299, every(8))
    assert told(found(late)) == [COPIED]


def test_the_one_that_started_earlier_is_the_source_whichever_ended_first() -> None:
    traffic = [
        response("a", "1", 0, WHOLE, end_s=60),
        response("b", "2", 5, every(8), end_s=10),
    ]
    assert told(found(traffic)) == [COPIED]
    assert told(found(traffic[::-1])) == [COPIED]


def test_every_equally_alike_response_of_the_source_is_listed() -> None:
    again = [response("a", "1b", 2, WHOLE), *pair(every(8))]
    (finding,) = found(again)
    sources = [finding.source, *finding.other_sources]
    assert [one.request_id for one in sources] == ["1b", "1"]


def test_a_stock_answer_of_three_tenants_is_explained() -> None:
    traffic = [response("c", "0", -20, every(9, name=3)), *pair(every(8))]
    assert {one.sink.request_id for one in found(traffic)} == {"1"}
    by = detector()
    for one in traffic:
        by.observe(one)
    assert by.observe(response("d", "3", 9, every(8, name=5))) == []


def test_the_receivers_own_earlier_answer_explains() -> None:
    traffic = [response("b", "0", -20, every(9, name=3)), *pair(every(8))]
    assert "2" not in {one.sink.request_id for one in found(traffic)}


def test_the_same_question_the_same_account_and_siblings_explain() -> None:
    question = text(9, 12)
    spans = (Span(Role.USER, 0, 12),)
    asked = [prompt("a", "1", 0, question, spans=spans), prompt("b", "2", 5, question, spans=spans)]
    assert found([*asked, *pair(every(8))]) == []
    accounts = pair(every(8), account="z")
    accounts[0] = response("a", "1", 0, WHOLE, account="z")
    assert found(accounts) == []
    assert found(pair(every(8), parent_id="1")) == []
    assert found(pair(every(8), gateway_cache_hit=True)) == []


@pytest.mark.parametrize("asked_b", [1, 9])
def test_an_earlier_answer_said_again_is_explained_by_its_own_question(asked_b: int) -> None:
    """A asks question 1, and then for the answer once more; B asks 1, or something else."""
    again = join(text(1, 12), WHOLE, text(2, 12))
    spans = (Span(Role.USER, 0, 12), Span(Role.ASSISTANT, 12, 612), Span(Role.USER, 612, 624))
    asked = prompt("b", "2", 5, text(asked_b, 12), spans=(Span(Role.USER, 0, 12),))
    copy = [response("a", "1", 0, WHOLE), asked, response("b", "2", 5, every(8))]
    traffic = [prompt("a", "1", 0, again, spans=spans), *copy]
    assert told(found(traffic)) == ([] if asked_b == 1 else [COPIED])


def test_what_the_receiver_sent_or_everybody_shows_does_not_count() -> None:
    copy = every(8)
    sent = [prompt("b", "2", 5, join(text(4, 50), copy))]
    assert found([*pair(copy), *sent]) == []
    by = detector(allowed=AllowList())
    for tenant in ("x", "y", "z"):
        by.warm(prompt(tenant, tenant, -5000, copy))
    assert found(pair(copy), by=by) == []


def test_what_is_explained_is_left_out_and_the_rest_can_still_be_a_copy() -> None:
    copy = every(8)
    sent = prompt("b", "2", 5, copy[:150])
    (finding,) = found([sent, *pair(copy)])
    assert told([finding]) == [COPIED]
    assert finding.evidence.reasons == {"own_prompt": 141}
    assert msgspec.json.decode(msgspec.json.encode(finding), type=Finding) == finding


def test_a_copy_that_bleeds_again_and_again_does_not_explain_itself() -> None:
    traffic = [response("a", "1", 0, WHOLE)]
    for number, tenant in enumerate("bcdefg"):
        traffic.append(response(tenant, tenant, 5 + 3 * number, every(8, name=number)))
    pairs = {(one.sink.request_id, one.source.request_id) for one in found(traffic)}
    assert pairs == {(tenant, "1") for tenant in "bcdefg"}


def test_a_run_found_later_replaces_the_copy_under_its_id() -> None:
    by = detector()
    copy = every(8)
    findings = [
        finding
        for one in [
            response("a", "1", 0, WHOLE, end_s=1),
            response("b", "2", 5, copy, end_s=6),
            prompt("a", "3", 4, copy[:100]),
            response("b", "2", 5, copy, end_s=6),
        ]
        for finding in by.observe(one)
    ]
    assert [one.rule for one in findings] == ["BW003", "BW001"]
    assert len({one.id for one in findings}) == 1


def test_nothing_is_sure_while_learning() -> None:
    by = detector(DetectionSettings())
    assert told(found(pair(every(8)), by=by)) == [(*COPIED[:3], "low")]


def test_memory_is_bounded_and_what_is_given_up_is_counted() -> None:
    store = SequenceStore()
    settings = CopySettings(memory_bytes=1_000 * DOCUMENT_BYTES)
    index = CopyIndex(settings, store, keep_ms=1_000_000)
    for number in range(3_000):
        at = store.add(response(f"t{number % 3}", str(number), 0, text(number, 200)), number % 3)
        assert index.meet(at, now_ms=0) == []
        assert index.nbytes <= settings.memory_bytes
    assert len(index) == 1_000
    assert index.evicted == 2_000
    again = store.add(response("t", "again", 0, text(2_999, 200)), 9)
    assert index.meet(again, now_ms=0) == [2_999]
    index.drop(2_900)
    store.drop(2_900)
    again = store.add(response("t", "again", 0, text(2_999, 200)), 9)
    assert index.meet(again, now_ms=0) == [99, 100]


def test_the_window_expires_by_event_time() -> None:
    store = SequenceStore()
    index = CopyIndex(CopySettings(), store, keep_ms=10_000)
    for number in range(300):
        at = store.add(response("t", str(number), number, text(7, 200)), 1)
        assert len(index.meet(at, now_ms=number * 1000)) == min(number, 10)
    assert len(index) == 11


@pytest.mark.parametrize("similarity", [0.3, 0.7])
def test_the_threshold_is_a_setting(similarity: float) -> None:
    settings = DetectionSettings(commonness=LEARNED, copies=CopySettings(similarity=similarity))
    copies = {step: every(step) for step in (4, 8, 14)}
    alike = {step: (1 - 2 / step) / (1 + 2 / step) for step in copies}
    for step, copy in copies.items():
        copied = bool(found(pair(copy), by=detector(settings)))
        assert copied == (alike[step] >= similarity or step > 10)


def test_copies_in_a_backlog_are_found_beside_a_pool_that_is_far_ahead() -> None:
    live = prompt("z", "9", 3_000, text(99, 50), pool="live")
    backlog = [
        response(*one, pool="old") for one in (("a", "1", 0, WHOLE), ("b", "2", 5, every(8)))
    ]
    assert told(found([live, *backlog])) == [COPIED]
