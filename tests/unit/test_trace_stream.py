"""The look-back over the sequences topic, on request and in the background for contradictions."""

import queue
from collections.abc import Sequence as Items

import msgspec
import pytest

from detector.config.root import Settings
from detector.errors import BrokerError, InputError
from detector.finding import Finding
from detector.trace.look_back import MAX_WAITING, RULES, LookBack, LookedBack
from detector.trace.model import Traced
from detector.trace.response import Wanted
from detector.trace.settings import TraceSettings
from detector.trace.stream import StreamTrace
from ingest.broker import BrokerRecord, Message, Reader
from ingest.kafka_settings import KafkaSettings
from ingest.memory_io import MemoryReader
from ingest.retained import SILENT_S
from ingest.sealing import KeyRing
from ingest.stream_settings import StreamSettings
from tests.unit.findings import finding
from tests.unit.sequences import join, prompt, response, text
from tests.unit.streams import TOPICS, Stream
from tests.unit.wire import OLD_SECRET, RING, SECRET

HOUR_S = 3_600
SECRET_TEXT = text(1, 40)
SINK = response("b", "sink", 20 * HOUR_S, join(text(2, 30), SECRET_TEXT), key_id=RING.key_id)
OLD = prompt("a", "old", HOUR_S, join(text(3, 12), SECRET_TEXT), key_id=RING.key_id)
AHEAD_MS = StreamSettings().ahead_ms
SETTINGS = Settings(kafka=KafkaSettings(topic_prefix="t"))


def retained() -> Stream:
    """Return a day of several pools; only one holds the source, another the same text."""
    stream = Stream(partitions=4)
    others = [
        prompt("c", f"{pool} {at}", at * HOUR_S, text(100 + at, 50), pool=pool, key_id=RING.key_id)
        for at in range(20)
        for pool in ("p", "q", "r")
    ]
    elsewhere = prompt("d", "same text", 2 * HOUR_S, SECRET_TEXT, pool="q", key_id=RING.key_id)
    everything = [OLD, elsewhere, *others, SINK]
    stream.send(sorted(everything, key=lambda one: one.started_at_ms), per_message=2)
    return stream


def tracing(stream: Stream) -> StreamTrace:
    return StreamTrace(
        stream.broker.reader(), RING, SETTINGS, topic=TOPICS.sequences,
        clock=lambda: stream.now_ms / 1000,
    )  # fmt: skip


def contradiction(rule: str = "BW101") -> Finding:
    sink = msgspec.structs.replace(
        finding().sink, tenant="b", request_id="sink", started_at_ms=SINK.started_at_ms
    )
    return msgspec.structs.replace(finding(), rule=rule, kv_pool="p", sink=sink)


@pytest.mark.parametrize("kv_pool", ["p", None])
def test_a_source_that_left_the_window_hours_ago_is_named(kv_pool: str | None) -> None:
    traced = tracing(retained()).trace(Wanted("sink", None, kv_pool), sought_from_ms=0)
    assert [(one.party.request_id, one.unexplained_tokens) for one in traced.sources] == [
        ("old", 40)
    ]
    assert traced.is_complete
    assert traced.scanned.sequences == 22
    assert traced.scanned.first_ms == 0


def test_progress_ends_at_the_whole() -> None:
    stream = retained()
    shares: list[tuple[float, str]] = []
    StreamTrace(
        stream.broker.reader(), RING, SETTINGS, topic=TOPICS.sequences,
        on_progress=lambda share, what: shares.append((share, what)),
    ).trace(Wanted("sink"), sought_from_ms=0)  # fmt: skip
    assert {what for _, what in shares} == {"looking for the request", "looking for sources"}
    assert shares[-1][0] == 1


def test_a_request_that_is_not_kept_is_told() -> None:
    with pytest.raises(InputError, match="no such request"):
        tracing(retained()).trace(Wanted("nobody's"), sought_from_ms=0)
    with pytest.raises(InputError, match="no such request"):
        tracing(retained()).trace(Wanted("sink"), sought_from_ms=SINK.ended_at_ms + AHEAD_MS + 1)


def test_a_request_under_another_secret_says_so() -> None:
    stream = retained()
    trace = StreamTrace(
        stream.broker.reader(), KeyRing.of(OLD_SECRET), SETTINGS, topic=TOPICS.sequences
    )
    with pytest.raises(InputError, match="sealed under a secret that is not here"):
        trace.trace(Wanted("sink"), sought_from_ms=0)


def test_what_cannot_be_opened_is_counted() -> None:
    stream = retained()
    partition = next(one for one in stream.sent(TOPICS.sequences) if one.key == b"p").partition
    stream.send_raw(Message(TOPICS.sequences, b"\xc1", partition=partition))
    traced = tracing(stream).trace(Wanted("sink"), sought_from_ms=0)
    assert traced.scanned.unreadable == 1
    assert len(traced.sources) == 1


def test_the_time_limit_ends_it_with_what_it_has() -> None:
    def trace(until_s: float) -> Traced:
        ticks = iter(range(1_000))
        return StreamTrace(
            retained().broker.reader(), RING, SETTINGS, topic=TOPICS.sequences, until_s=until_s,
            clock=lambda: next(ticks),
        ).trace(Wanted("sink", "b", "p"), sought_from_ms=SINK.started_at_ms)  # fmt: skip

    traced = trace(10)
    assert not traced.is_complete
    assert [one.party.request_id for one in traced.sources] == ["old"]
    assert 0 < traced.scanned.sequences < 22
    with pytest.raises(BrokerError, match="not read to its end"):
        trace(2)


def test_a_broker_that_falls_silent_is_not_waited_for_for_ever() -> None:
    class Silent(MemoryReader):
        def poll(self, timeout_s: float) -> Items[BrokerRecord]:
            stream.now_ms += round(timeout_s * 1000)
            return []

    stream = retained()
    began_ms = stream.now_ms
    trace = StreamTrace(
        Silent(stream.broker), RING, SETTINGS, topic=TOPICS.sequences,
        clock=lambda: stream.now_ms / 1000,
    )  # fmt: skip
    with pytest.raises(BrokerError, match="not read to its end"):
        trace.trace(Wanted("sink"), sought_from_ms=0)
    assert stream.now_ms - began_ms == SILENT_S * 1000


def looking_back(stream: Stream, told: "queue.Queue[LookedBack]") -> LookBack:
    return LookBack(
        SETTINGS, open_reader=stream.broker.reader, ring=lambda: KeyRing.of(SECRET), tell=told.put
    )


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_contradiction_is_looked_back_for_in_the_background(rule: str) -> None:
    told: queue.Queue[LookedBack] = queue.Queue()
    looks = looking_back(retained(), told)
    looks.start()
    assert looks.ask(contradiction(rule))
    done = told.get(timeout=30)
    assert looks.close(30)
    assert done.finding_id == contradiction().id
    assert done.problem is None
    assert done.traced is not None
    assert [one.party.request_id for one in done.traced.sources] == ["old"]


def test_other_findings_and_too_many_are_turned_away() -> None:
    looks = looking_back(retained(), queue.Queue())
    assert not looks.ask(contradiction("BW001"))
    assert [looks.ask(contradiction()) for _ in range(MAX_WAITING)] == [True] * MAX_WAITING
    assert not looks.ask(contradiction())
    looks.start()
    assert looks.close(60)


def test_a_look_back_that_fails_says_why_and_the_next_has_its_turn() -> None:
    stream = retained()
    readers = iter([None, stream.broker.reader()])

    def open_reader() -> Reader:
        reader = next(readers)
        if reader is None:
            raise BrokerError("no broker answers", where="kafka", hint="start it")
        return reader

    told: queue.Queue[LookedBack] = queue.Queue()
    looks = LookBack(SETTINGS, open_reader=open_reader, ring=lambda: RING, tell=told.put)
    looks.start()
    assert looks.ask(contradiction())
    assert looks.ask(contradiction())
    first, second = told.get(timeout=30), told.get(timeout=30)
    assert (first.traced, first.problem) == (None, "kafka: no broker answers (start it)")
    assert second.traced is not None
    assert looks.close(30)


def test_the_reach_is_a_setting() -> None:
    settings = Settings(
        kafka=KafkaSettings(topic_prefix="t"), trace=TraceSettings(since_ms=HOUR_S * 1000)
    )
    stream = retained()
    trace = StreamTrace(stream.broker.reader(), RING, settings, topic=TOPICS.sequences)
    assert trace.trace(Wanted("sink"), sought_from_ms=0).sources == ()
