"""A worker tells what it could not see: other keys, junk, lateness, evictions, absent ids."""

from collections import Counter

from detector.finding import Finding
from detector.settings import IndexSettings
from ingest.broker import Message
from ingest.record_batches import pack_clear
from ingest.schema_records import EngineEvent, EventKind
from ingest.sealing import KeyRing
from tests.unit.sequences import SETTINGS, prompt, response, text
from tests.unit.streams import TOPICS, Stream
from tests.unit.wire import OLD_SECRET, record, sealed_by_hand

SEVERAL = 12


def blind(stream: Stream) -> dict[str, Finding]:
    """Return the findings about blindness by cause."""
    told = [one for one in stream.findings() if one.rule == "BW901"]
    assert len(told) == len({one.id for one in told})
    return {cause: one for one in told for cause in one.runtime or {}}


def ran(stream: Stream, *, index_bytes: int | None = None) -> dict[str, Finding]:
    settings = SETTINGS
    if index_bytes is not None:
        settings = settings.model_copy(update={"index": IndexSettings(memory_bytes=index_bytes)})
    runner = stream.runner(stream.handler(settings=settings))
    runner.start()
    runner.finish()
    return blind(stream)


def test_a_sender_with_another_key_is_told_with_its_first_batch() -> None:
    stream = Stream()
    value = sealed_by_hand([record(text(1, 12).tobytes())], ring=KeyRing.of(OLD_SECRET))
    stream.send_raw(Message(TOPICS.sequences, value, b"pool-7"), at_ms=5_000)
    stream.send([prompt("a", "1", 6, text(2, 30))])
    (found,) = ran(stream).values()
    assert found.runtime == {"unknown_key": "1"}
    assert (found.kv_pool, found.engine, found.observed_at_ms) == ("pool-7", "", 5_000)
    assert "a secret that workers lack" in found.explanation


def test_junk_is_told_when_there_is_more_than_a_little_of_it() -> None:
    stream = Stream()
    for number in range(SEVERAL):
        stream.send_raw(Message(TOPICS.sequences, b"junk", b"p"), at_ms=number * 1_000)
    assert ran(stream)["unreadable"].runtime == {"unreadable": "10"}
    calm = Stream()
    calm.send_raw(Message(TOPICS.runtime, b"junk", b"p"), at_ms=1_000)
    assert ran(calm) == {}


def test_junk_of_every_input_counts() -> None:
    for topic in TOPICS.inputs:
        stream = Stream()
        for number in range(SEVERAL):
            stream.send_raw(Message(topic, b"junk", b"p"), at_ms=number * 1_000)
        assert set(ran(stream)) == {"unreadable"}, topic


def test_sequences_that_come_too_late_are_told_of_their_pool() -> None:
    stream = Stream()
    stream.send([prompt("a", f"now-{at}", at, text(at, 30)) for at in (1_000, 1_002)])
    stream.send([prompt("a", f"late-{n}", n, text(n, 30)) for n in range(SEVERAL)])
    found = ran(stream)["late"]
    assert found.kv_pool == "p"
    assert Counter(found.runtime or {}).keys() == {"late"}


def test_evictions_are_told() -> None:
    stream = Stream()
    stream.send([prompt("a", str(n), n, text(n, 20_000)) for n in range(3 * SEVERAL)])
    assert "evicted" in ran(stream, index_bytes=1)


def test_responses_without_ids_are_told_of_their_engine() -> None:
    stream = Stream()
    stream.send([response("a", str(n), n, text(n, 0)) for n in range(SEVERAL)])
    found = ran(stream)["no_tokens"]
    assert found.engine
    assert found.severity.value == "low"


def test_a_report_of_a_sidecar_travels_as_an_engine_event() -> None:
    stream = Stream()
    lost = EngineEvent(
        kind=EventKind.BLIND, engine="e", kv_pool="p", at_ms=9, detail="log_lost", count=3
    )
    stream.send_raw(Message(TOPICS.engine_events, pack_clear([lost]), b"p"), at_ms=9)
    assert ran(stream)["log_lost"].explanation.startswith("Blind on engine e: 3 stretches")


def test_good_traffic_is_not_blind() -> None:
    stream = Stream()
    stream.send([prompt("a", str(n), n, text(n, 30)) for n in range(SEVERAL)])
    assert ran(stream) == {}
