"""Rules BW101 to BW104: what contradicts itself is told once, in any order; nothing else is."""

from collections.abc import Sequence
from itertools import permutations

import pytest

from detector.finding import NO_OVERLAP, Finding, Severity
from detector.runtime.settings import RuntimeSettings
from detector.settings import WindowSettings
from detector.streaming.runtime_watch import RuntimeWatch
from ingest.schema_records import EngineEvent, EventKind, RuntimeSample, SequenceRecord
from tests.unit.runtime_records import answered, event, healthy, sample, sent

Taken = RuntimeSample | EngineEvent | SequenceRecord


def take(watch: RuntimeWatch, one: Taken, *, is_news: bool = True) -> list[Finding]:
    if isinstance(one, RuntimeSample):
        return watch.sample(one, is_news=is_news)
    if isinstance(one, EngineEvent):
        return watch.event(one, is_news=is_news)
    return watch.parts([one], is_news=is_news)


def found(records: Sequence[Taken]) -> list[Finding]:
    watch = RuntimeWatch(RuntimeSettings(), WindowSettings())
    return [*(told for one in records for told in take(watch, one)), *watch.idle()]


def contradictions(records: Sequence[Taken]) -> list[str]:
    """Return the rules about requests; that of the limits themselves speaks before any comes."""
    return [one.rule for one in found(records) if one.rule != "BW401"]


def rejected(at_s: float = 10, **more: object) -> EngineEvent:
    given: dict[str, object] = {
        "request_id": "r",
        "prompt_tokens": 700_000,
        "limit_tokens": 681_274,
    }
    return event(EventKind.REJECTED, at_s, **(given | more))


def limits(at_s: float = 0, tokens: int = 1_000, **more: object) -> list[RuntimeSample]:
    return [sample(at, max_input_tokens=tokens, **more) for at in (at_s, at_s + 6)]


ANSWER = answered("r", 10, 40, status=200, finish_reason="stop")


def test_a_rejected_request_that_was_answered_is_told_in_any_order() -> None:
    records: list[Taken] = [sent("r", 10, 0), rejected(), ANSWER]
    told = [found(order) for order in permutations(records)]
    assert {tuple(one.rule for one in findings) for findings in told} == {("BW101",)}
    assert len({findings[0].id for findings in told}) == 1
    one = told[0][0]
    assert (one.severity, one.sink.tenant, one.sink.request_id) == (Severity.HIGH, "b", "r")
    assert one.evidence == NO_OVERLAP
    assert not one.is_content
    for part in ("700,000 tokens", "681,274", "40 tokens", "status 200"):
        assert part in one.explanation


@pytest.mark.parametrize(
    "records",
    [
        [rejected()],
        [ANSWER],
        [rejected(), sent("r", 10, 40)],
        [rejected(), answered("r", 10, 1, finish_reason="abort")],
        [rejected(), answered("r", 10, 40, status=400)],
        [rejected(), answered("r", 10, 0)],
        [rejected(request_id="other"), ANSWER],
        [rejected(request_id=None), ANSWER],
        [rejected(tenant="c"), ANSWER],
        [rejected(kv_pool="q"), ANSWER],
        [rejected(detail="duplicate_id"), ANSWER],
        [rejected(-51), ANSWER],
        [rejected(73), ANSWER],
        [event(EventKind.ABORTED, 10, request_id="r"), ANSWER],
    ],
)
def test_what_is_no_rejected_and_answered_request(records: list[Taken]) -> None:
    assert not found(records)


@pytest.mark.parametrize("at_s", [-50, 40, 72])
def test_the_clocks_of_engine_and_gateway_may_differ(at_s: float) -> None:
    assert [one.rule for one in found([rejected(at_s), ANSWER])] == ["BW101"]


def test_a_response_without_token_ids_counts_by_its_status() -> None:
    assert [one.rule for one in found([rejected(), answered("r", 10, 0, status=200)])] == ["BW101"]


def test_repeats_are_told_once() -> None:
    assert len(found([rejected(), ANSWER, ANSWER, rejected(), rejected(11)])) == 1


@pytest.mark.parametrize(("tokens", "rules"), [(1_000, []), (1_001, ["BW102"])])
def test_an_answer_to_an_over_limit_prompt_is_told(tokens: int, rules: list[str]) -> None:
    request = [sent("r", 10, tokens), ANSWER]
    assert [one.rule for one in found([*limits(), *request])] == rules
    assert [one.rule for one in found([*request, *limits()])] == rules


def test_the_engine_that_only_reads_prompts_sets_the_limit() -> None:
    decode = limits(0, 5_000, engine="e", role="decode")
    prefill = limits(1, 1_000, engine="p1", role="prefill")
    request = [sent("r", 20, 1_500), answered("r", 20, 40)]
    assert not found([*decode, *request])
    assert contradictions([*decode, *prefill, *request]) == ["BW102"]
    larger = limits(2, 2_000, engine="p2", role="prefill")
    assert not contradictions([*decode, *prefill, *larger, *request])


def test_another_engines_limit_says_nothing() -> None:
    assert not found([*limits(engine="other"), sent("r", 10, 1_500), ANSWER])


def test_around_a_restart_with_another_limit_the_higher_one_holds() -> None:
    before, after = limits(0, 5_000), limits(100, 1_000)
    early = [sent("r", 150, 1_500), answered("r", 150, 40)]
    late = [sent("r", 170, 1_500), answered("r", 170, 40)]
    assert not found([*before, *after, *early])
    assert [one.rule for one in found([*before, *after, *late])] == ["BW102"]


def test_a_prompt_in_parts_is_over_the_limit_as_a_whole() -> None:
    parts = [sent("r", 10, tokens, part=at, parts=2) for at, tokens in enumerate((600, 410))]
    assert [one.rule for one in found([*limits(), ANSWER, *parts])] == ["BW102"]
    assert not found([*limits(), ANSWER, parts[0], parts[0]])


@pytest.mark.parametrize(
    ("sent_tokens", "reported", "rules"),
    [
        (284_937, 1, ["BW103"]),
        (200, 99, ["BW103"]),
        (200, 100, []),
        (100, 37, []),
        (100, 36, ["BW103"]),
        (100, 9_000, []),
        (100, None, []),
    ],
)
def test_usage_far_below_what_was_sent_is_told(
    sent_tokens: int, reported: int | None, rules: list[str]
) -> None:
    answer = answered("r", 10, 40, reported_prompt_tokens=reported)
    assert [one.rule for one in found([sent("r", 10, sent_tokens), answer])] == rules
    assert [one.rule for one in found([answer, sent("r", 10, sent_tokens)])] == rules


def test_a_request_that_failed_need_not_report_its_usage() -> None:
    failed = answered("r", 10, 0, status=500, reported_prompt_tokens=0)
    assert not found([sent("r", 10, 5_000), failed])


def test_an_id_of_two_tenants_is_told_in_any_order() -> None:
    records = [sent("r", 0, 9), sent("r", 300, 9, tenant="c"), answered("r", 0, 9)]
    told = [found(order) for order in permutations(records)]
    assert {tuple(one.rule for one in findings) for findings in told} == {("BW104",)}
    assert len({findings[0].id for findings in told}) == 1
    assert (told[0][0].sink.tenant, told[0][0].source.tenant) == ("c", "b")


@pytest.mark.parametrize(
    "second",
    [
        sent("r", 300.001, 9, tenant="c"),
        sent("r", 5, 9),
        sent("r", 5, 9, tenant="c", kv_pool="q"),
        sent("s", 5, 9, tenant="c"),
        sent("r", 5, 9, tenant="c", account="a"),
    ],
    ids=["later", "same tenant", "other pool", "other id", "same account"],
)
def test_what_is_no_reused_id(second: SequenceRecord) -> None:
    assert not found([sent("r", 0, 9, account="a"), second])


def test_clean_traffic_with_healthy_samples_is_silent() -> None:
    records: list[Taken] = []
    for at in range(0, 3_600, 5):
        tokens = 50 + at
        records += [
            healthy(at), sent(f"{at}", at, tokens, tenant=f"t{at % 7}"),
            answered(
                f"{at}", at, 40, tenant=f"t{at % 7}", reported_prompt_tokens=tokens, status=200
            ),
        ]  # fmt: skip
    assert not found(records)


def test_what_was_finished_before_is_not_told_again_but_completes_what_is_new() -> None:
    for news in ((False, False), (True, False), (False, True)):
        watch = RuntimeWatch(RuntimeSettings(), WindowSettings())
        told = take(watch, rejected(), is_news=news[0]) + take(watch, ANSWER, is_news=news[1])
        assert [one.rule for one in told] == ["BW101"] * any(news)


def test_memory_is_bounded_by_event_time() -> None:
    watch = RuntimeWatch(RuntimeSettings(), WindowSettings())
    for at in range(0, 20_000, 10):
        take(watch, sent(f"{at}", at, 9))
    assert watch.requests_known < 200
