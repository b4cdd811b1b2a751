"""Runtime rules through the stream: the public incident again, the join, and a restart."""

from typing import Any

import msgspec

from detector.finding import Finding, Severity
from ingest.broker import Message
from ingest.memory_runner import MemoryRunner
from ingest.record_batches import pack_clear
from ingest.record_headers import SCHEMA
from ingest.schema import encode
from ingest.schema_records import EngineEvent, EventKind, RuntimeSample
from tests.unit.runtime_records import answered, event, sample, sent
from tests.unit.sequences import join, prompt, response, text
from tests.unit.streams import TOPICS, Stream

CONTEXT, PREFILL_POOL, DECODE_POOL = 1_048_576, 681_280, 2_040_000
LIMIT = PREFILL_POOL - 6
"""From this length on the prefill engine rejects."""

OVER_LONG = 700_000


def tell(stream: Stream, at_s: float, *records: RuntimeSample | EngineEvent) -> None:
    for one in records:
        if isinstance(one, RuntimeSample):
            message = Message(TOPICS.runtime, pack_clear([one]), b"p")
        else:
            message = Message(TOPICS.engine_events, pack_clear([one]), b"p")
        stream.send_raw(message, at_ms=round(at_s * 1000))


def request(stream: Stream, at_s: float, **more: Any) -> None:
    """Send the prompt and response of a request whose log holds no token ids."""
    name = f"over-long-{at_s}"
    told = {"prompt_token_count": OVER_LONG, "engine": "decode-0", "status": 200, **more}
    for one in (sent(name, at_s, 0, **told), answered(name, at_s, 0, **told)):
        message = Message(TOPICS.sequences, encode(one), b"p", ((SCHEMA, b"sequence/1"),))
        stream.send_raw(message, at_ms=one.ended_at_ms)


def scraped(stream: Stream, at_s: float, **prefill: Any) -> None:
    limits = {"context_tokens": CONTEXT, "running_requests": 0}
    of_prefill: dict[str, Any] = {"pool_tokens": PREFILL_POOL, "max_input_tokens": LIMIT, **limits}
    tell(
        stream,
        at_s,
        sample(at_s, engine="prefill-0", role="prefill", **(of_prefill | prefill)),
        sample(at_s, engine="decode-0", role="decode", pool_tokens=DECODE_POOL, **limits),
    )


def found(stream: Stream) -> list[Finding]:
    return list({one.id: one for one in stream.findings()}.values())


def running(stream: Stream) -> MemoryRunner:
    runner = stream.runner(idle_s=0.4)
    runner.start()
    return runner


def test_the_public_incident_is_told_before_traffic_and_within_seconds_of_the_answer() -> None:
    stream = Stream()
    runner = running(stream)
    for at in range(0, 15, 5):
        scraped(stream, at)
        runner.turn()
    (warned,) = found(stream)
    assert (warned.rule, warned.engine) == ("BW206", "prefill-0")
    rejection = event(
        EventKind.REJECTED, 20, engine="prefill-0", request_id="over-long-20",
        prompt_tokens=OVER_LONG, limit_tokens=LIMIT,
    )  # fmt: skip
    tell(stream, 20, rejection)
    request(stream, 20)
    runner.turn()
    told = [one for one in found(stream) if one.rule not in {"BW206", "BW401"}]
    assert {one.rule for one in told} == {"BW101", "BW102"}
    assert {one.severity for one in told} == {Severity.HIGH}
    assert all(one.detected_at_ms - one.observed_at_ms <= 5_000 for one in told)
    assert {one.sink.request_id for one in told} == {"over-long-20"}


def test_an_over_long_request_that_fails_as_it_should_is_no_contradiction() -> None:
    stream = Stream()
    runner = running(stream)
    for at in (0, 5, 10):
        scraped(stream, at, context_tokens=PREFILL_POOL)
    request(stream, 20, status=400, finish_reason="abort")
    request(stream, 30, prompt_token_count=LIMIT)
    runner.finish()
    assert {one.rule for one in found(stream)} == {"BW401"}  # decode would take it all the same


def bleed(stream: Stream) -> None:
    common = text(1, 40)
    stream.send([prompt("a", "1", 0, common), response("b", "2", 5, join(common, text(2, 9)))])


def test_a_bleed_is_one_step_graver_beside_a_failure_of_its_pool() -> None:
    versions: list[Finding] = []
    for order in ("alone", "before", "after"):
        stream = Stream()
        runner = running(stream)
        if order == "before":
            tell(stream, 4, event(EventKind.CLEAR_FAILED, 4))
            runner.finish()
        bleed(stream)
        runner.finish()
        if order == "after":
            tell(stream, 8, event(EventKind.CLEAR_FAILED, 4))
            runner.finish()
        versions += [one for one in found(stream) if one.is_content]
    alone, *raised = versions
    assert (alone.severity, alone.runtime) == (Severity.HIGH, None)
    for one in raised:
        assert one.severity is Severity.CRITICAL
        assert one.runtime is not None
        told_at = {"detected_at_ms": alone.detected_at_ms}
        calm = msgspec.structs.replace(one, severity=Severity.HIGH, runtime=None, **told_at)
        assert calm == alone


def test_a_worker_started_anew_in_an_episode_tells_it_under_the_same_id_or_not_again() -> None:
    """State that lasts, told before or after the stop; both workers see all of what is kept."""
    told: dict[int, list[str]] = {}
    for stop_at in (15, 60, 200):
        stream = Stream()
        runner = running(stream)
        for at in range(0, 300, 5):
            scraped(stream, at, unreleased_tokens=9_000, unreleased_quality="exact")
            runner.turn()
            if at == stop_at:
                committed = runner.committed
                runner = stream.runner(idle_s=0.4)
                runner.start(committed=committed)
        runner.finish()
        told[stop_at] = sorted(one.id for one in stream.findings())
    assert told[15] == told[60] == told[200]
    assert len(told[15]) == len(set(told[15])) == 3


def test_a_state_that_began_before_the_window_is_not_told_under_another_id() -> None:
    """What a new worker reads again begins in the middle of the state."""
    stream = Stream()
    runner = running(stream)
    for at in range(0, 2_500, 5):
        scraped(stream, at, unreleased_tokens=9_000, unreleased_quality="exact")
        if at % 100 == 0:
            stream.send([prompt("a", f"{at}", at, text(at, 12))])
        runner.turn()
        if at == 2_000:
            committed = runner.committed
            runner = stream.runner(idle_s=0.4)
            runner.start(committed=committed)
    runner.finish()
    assert sorted(one.rule for one in stream.findings()) == ["BW201", "BW206", "BW401"]


def test_a_sample_from_the_future_is_refused() -> None:
    stream = Stream()
    runner = running(stream)
    tell(stream, 10, sample(5_000, pool_tokens=1, context_tokens=2))
    tell(stream, 10, event(EventKind.KV_CANARY, 5_000))
    runner.finish()
    assert not found(stream)
    assert len(stream.sent(TOPICS.dead_letter)) == 2
