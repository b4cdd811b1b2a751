"""What a worker that starts anew, or an engine that does, must not hide."""

from typing import Any

import msgspec
import pytest

from detector.finding import Finding, Severity
from detector.runtime.settings import RuntimeSettings
from detector.settings import IndexSettings, WindowSettings
from detector.streaming.runtime_watch import RuntimeWatch
from ingest.broker import BrokerRecord, Message, TopicPartition
from ingest.record_batches import pack_clear
from ingest.schema_records import EventKind
from ingest.sealing import KeyRing
from tests.unit.runtime_records import answered, event, healthy, sample, sent
from tests.unit.sequences import SETTINGS, join, pairs, prompt, response, text
from tests.unit.streams import TOPICS, Stream
from tests.unit.wire import OLD_SECRET, SECRET, record, sealed_by_hand

LARGE, SMALL = 900_000, 500_000


def watch() -> RuntimeWatch:
    return RuntimeWatch(RuntimeSettings(), WindowSettings())


def causes(stream: Stream) -> set[str]:
    """Return what findings say of things that were not seen."""
    return {cause for one in stream.findings() for cause in one.runtime or {}}


def test_a_worker_that_lacks_a_key_says_so_though_the_one_before_had_it() -> None:
    stream = Stream()

    def send(first: int, last: int) -> None:
        for number in range(first, last):
            at_ms = 10_000 * number
            made = record(
                text(number, 12).tobytes(),
                request_id=f"r{number}",
                started_at_ms=at_ms,
                ended_at_ms=at_ms,
            )
            for ring in (KeyRing.of(OLD_SECRET), KeyRing.of(SECRET), KeyRing.of(SECRET)):
                value = sealed_by_hand([made], ring=ring)
                stream.send_raw(Message(TOPICS.sequences, value, b"p"), at_ms=at_ms)

    before = stream.runner(stream.handler(ring=KeyRing.of(SECRET, OLD_SECRET)))
    before.start()
    send(0, 20)
    before.finish()
    assert "unknown_key" not in causes(stream)
    after = stream.runner(stream.handler())
    after.start(committed=before.committed)
    send(20, 100)  # never quiet for long enough to end an episode
    after.finish()
    assert "unknown_key" in causes(stream)


def test_a_worker_with_less_memory_than_the_one_before_says_what_it_gives_up() -> None:
    stream = Stream()
    before = stream.runner(stream.handler())
    before.start()
    stream.send([prompt("a", str(n), n, text(n, 20_000)) for n in range(36)])
    before.finish()
    small = SETTINGS.model_copy(update={"index": IndexSettings(memory_bytes=1)})
    after = stream.runner(stream.handler(settings=small))
    after.start(committed=before.committed)
    stream.send([prompt("a", str(n), n, text(n, 20_000)) for n in range(36, 136)])
    after.finish()
    assert "evicted" in causes(stream)


@pytest.mark.parametrize("restarted", [False, True])
def test_the_last_sample_of_an_engine_is_judged_though_no_event_comes(*, restarted: bool) -> None:
    stream = Stream()

    def tell(topic: str, at: float, one: Any) -> None:
        stream.send_raw(Message(topic, pack_clear([one]), b"p"), at_ms=round(at * 1000))

    def traffic(first: int, last: int) -> None:
        for at in range(first, last, 5):
            stream.send([prompt("a", str(at), at, text(at, 30))])
            tell(TOPICS.runtime, at, healthy(at))

    runner = stream.runner(idle_s=0.4)
    runner.start()
    tell(TOPICS.engine_events, 1, event(EventKind.REJECTED, 1, request_id="x"))
    traffic(5_000, 5_060)
    runner.finish()
    if restarted:
        committed = runner.committed
        runner.stop()
        runner = stream.runner(idle_s=0.4)
        runner.start(committed=committed)
    traffic(5_060, 5_120)
    tell(TOPICS.runtime, 5_121, healthy(5_121, clear_failures_total=3))  # and it dies
    runner.catch_up()
    for at in range(5_122, 5_300):
        stream.now_ms = at * 1000
        runner.turn()
    assert "BW202" in {one.rule for one in stream.findings()}


@pytest.mark.parametrize("first", [TOPICS.engine_events, TOPICS.sequences])
def test_evidence_that_comes_while_a_window_is_rebuilt_raises_what_was_told(first: str) -> None:
    stream, secret = Stream(), text(1, 40)
    before = stream.runner()
    before.start()
    stream.send(
        [
            prompt("a", "1", 0, secret),
            response("b", "2", 5, join(secret, text(2, 9))),
            prompt("y", "8", 7, text(8, 30)),
        ]
    )
    before.finish()
    (found,) = (one for one in stream.findings() if one.is_content)
    assert found.severity is Severity.HIGH
    before.stop()
    failed = pack_clear([event(EventKind.CLEAR_FAILED, 8)])
    stream.send_raw(Message(TOPICS.engine_events, failed, b"p"), at_ms=8_000)
    stream.send([prompt("x", str(at), at, text(at, 30)) for at in (12, 14)])
    after = stream.handler()
    after.assign(0, before.committed)
    messages: list[Message] = []
    for topic in sorted((TOPICS.engine_events, TOPICS.sequences), key=first.__ne__):
        messages += after.take(0, _records(stream, topic)).messages
    messages += after.idle(0).messages
    told = [
        msgspec.json.decode(m.value or b"", type=Finding)
        for m in messages
        if m.topic == TOPICS.findings
    ]
    assert [one.severity for one in told if one.id == found.id] == [Severity.CRITICAL]


def _records(stream: Stream, topic: str) -> list[BrokerRecord]:
    reader = stream.broker.reader()
    reader.assign({TopicPartition(topic, 0): 0})
    records: list[BrokerRecord] = []
    while come := reader.poll(0.0):
        records += come
    return records


def test_a_topic_that_ends_before_what_was_finished_is_read_anew() -> None:
    stream, secret = Stream(), text(1, 30)
    runner = stream.runner()
    runner.start(committed={TopicPartition(topic, 0): 500 for topic in TOPICS.inputs})
    stream.send(
        [
            prompt("a", "1", 0, secret),
            response("b", "2", 5, secret),
            prompt("x", "3", 9, text(3, 30)),
        ]
    )
    runner.finish()
    assert pairs(stream.findings()) == {("2", "a")}


@pytest.mark.parametrize("ranks", [(None,), (0,), (0, 1)])
def test_a_limit_falls_when_an_engine_starts_with_a_smaller_pool(
    ranks: tuple[int | None, ...],
) -> None:
    one = watch()
    for first, pool in ((0, LARGE), (1_000, SMALL)):
        for at in range(first, first + 100, 5):
            for rank in ranks:
                told = sample(
                    at, rank=rank, pool_tokens=pool, context_tokens=10**6, running_requests=0
                )
                one.sample(told, is_news=True)
    between = (LARGE + SMALL) // 2
    found = one.parts(
        [
            sent("q", 2_000, 0, prompt_token_count=between),
            answered("q", 2_000, 0, prompt_token_count=between, status=200),
        ],
        is_news=True,
    )
    assert "BW102" in {finding.rule for finding in found}


def test_failures_of_one_second_count_each_and_those_sent_again_do_not() -> None:
    failed = event(EventKind.TRANSFER_FAILED, 10)
    once, often = watch(), watch()
    for number in range(6):
        assert not once.event(failed, is_news=True, at="7.0")
        often.event(failed, is_news=True, at=f"7.{number}")
    assert "BW204" not in {one.rule for one in once.idle()}
    assert "BW204" in {one.rule for one in often.idle()}


def test_what_is_remembered_of_one_id_is_bounded() -> None:
    one, findings = watch(), set()
    for number in range(1_000):
        tenant = f"t{number % 7}"
        told = one.parts([sent("always", number * 5, 10, tenant=tenant)], is_news=True)
        findings |= {finding.id for finding in told}
    (same,) = one._requests._of.values()
    assert len(same.told) <= 1_024 < len(findings)
