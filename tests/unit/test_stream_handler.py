"""The handler: what is finished when, what is refused, and what a bad record costs others."""

import msgspec
import pytest

from detector.errors import TooManyDeadLettersError
from detector.finding import Finding
from detector.model import Kind
from detector.streaming.handler import StreamHandler
from ingest.broker import Message, TopicPartition
from ingest.dead_letter import DeadLetter
from ingest.dead_letter_limit import DeadLetterSettings
from ingest.memory_runner import MemoryRunner
from ingest.record_batches import pack_clear, unpack_clear
from ingest.record_headers import SCHEMA
from ingest.schema import Encoding, decode, encode
from ingest.schema_records import EngineEvent, EventKind, RequestRow, RuntimeSample
from ingest.schema_sequence import to_record
from ingest.sealing import KeyRing
from tests.unit.sequences import pairs, prompt, response, text
from tests.unit.streams import TOPICS, Stream, packed
from tests.unit.wire import OLD_SECRET, SECRET, record, sealed_by_hand

SECRET_TEXT = text(1, 30)
BLEED = [prompt("a", "1", 0, SECRET_TEXT), response("b", "2", 5, SECRET_TEXT)]
AT = TopicPartition(TOPICS.sequences, 0)


def started(
    stream: Stream, *, limit: DeadLetterSettings | None = None
) -> tuple[StreamHandler, MemoryRunner]:
    handler = stream.handler(limit=limit)
    runner = stream.runner(handler)
    runner.start()
    return handler, runner


def letters(stream: Stream) -> list[DeadLetter]:
    return [decode(DeadLetter, one.value or b"") for one in stream.sent(TOPICS.dead_letter)]


def test_a_record_is_done_when_all_its_sequences_have_had_their_turn() -> None:
    stream = Stream()
    _, runner = started(stream)
    stream.send([BLEED[0], response("x", "3", 0, text(2, 30), end_s=9)], per_message=2)
    runner.turn()
    assert AT not in runner.committed  # the response ended now: what ends before may still come
    stream.send([prompt("x", "4", 9.3, text(3, 30))])
    runner.turn()
    assert AT not in runner.committed
    stream.send([prompt("x", "5", 9.5, text(4, 30))])
    runner.turn()
    assert runner.committed == {AT: 1}
    runner.finish()
    assert runner.committed == {AT: 3}


def test_a_later_record_is_not_done_before_an_earlier_one() -> None:
    stream = Stream()
    _, runner = started(stream)
    stream.send([response("x", "1", 0, text(2, 30), end_s=9), prompt("x", "2", 3, text(3, 30))])
    runner.catch_up()
    assert AT not in runner.committed


def test_a_pair_is_found_as_soon_as_time_has_passed_the_answers_end() -> None:
    stream = Stream()
    _, runner = started(stream)
    stream.send([*BLEED, prompt("x", "3", 6.3, text(3, 30))])
    runner.catch_up()
    assert not stream.findings()
    stream.send([prompt("x", "4", 6.5, text(4, 30))])
    runner.catch_up()
    assert pairs(stream.findings()) == {("2", "a")}


def test_a_clock_that_is_ahead_holds_nothing_back_for_long() -> None:
    stream = Stream()
    handler, runner = started(stream)
    ((_, ahead),) = packed([response("x", "1", 0, text(900, 30), end_s=50)])
    stream.send_raw(ahead, at_ms=1000)
    runner.turn()
    stream.send([prompt("y", f"{at}", at, text(at, 30)) for at in range(2, 40)])
    runner.catch_up()
    assert AT not in runner.committed
    stream.now_ms = 62_000
    ((_, late),) = packed([prompt("y", "40", 40, text(40, 30))])
    stream.send_raw(late)
    runner.turn()
    assert runner.committed == {AT: 40}
    assert handler.held[0].window.waited_s(62.0) == 0


def test_a_sequence_that_ends_after_it_was_sent_is_refused_alone() -> None:
    stream = Stream()
    handler, runner = started(stream)
    both = [prompt("a", "1", 0, SECRET_TEXT), prompt("a", "9", 5_000_000, text(9, 30))]
    ((_, message),) = packed(both, per_message=2)
    stream.send_raw(message, at_ms=1000)
    stream.send([BLEED[1]])
    runner.finish()
    assert pairs(stream.findings()) == {("2", "a")}
    (letter,) = letters(stream)
    assert (letter.reason, letter.records_lost, letter.source_offset) == ("ahead_of_time", 1, 0)
    assert handler.memory.now_ms == 6_000


def test_poison_among_good_records_costs_only_itself() -> None:
    stream = Stream()
    handler, runner = started(stream)
    value = encode(to_record(BLEED[0]))
    broken = sealed_by_hand([record(text(5, 12).tobytes()), record(kv_pool="elsewhere")])
    poison = [
        Message(TOPICS.sequences, b"\x93 no batch", b"p"),
        Message(TOPICS.sequences, None, b"p"),
        Message(TOPICS.sequences, value, b"p", ((SCHEMA, b"sequence/1"),)),
        Message(TOPICS.sequences, broken, b"p"),
        Message(TOPICS.sequences, broken[:-3], b"p"),
    ]
    for sequence in (*BLEED, prompt("x", "3", 20, text(3, 30))):
        stream.send([sequence])
        for message in poison:
            stream.send_raw(message)
    runner.finish()
    findings = stream.findings()
    assert pairs(one for one in findings if one.is_content) == {("2", "a")}
    assert [one.rule for one in findings if not one.is_content] == ["BW901"]
    assert runner.committed == {AT: 18}
    told = letters(stream)
    assert len(told) == 15
    assert {one.source_offset for one in told} == set(range(18)) - {0, 6, 12}
    assert sum(handler.tally.dead_letters.values()) == 15


def test_too_much_poison_ends_the_process_and_commits_nothing_of_it() -> None:
    stream = Stream()
    limit = DeadLetterSettings(min_messages=10)
    _, runner = started(stream, limit=limit)
    for _ in range(30):
        stream.send_raw(Message(TOPICS.sequences, b"\x93 no batch", b"p"), at_ms=1000)
    with pytest.raises(TooManyDeadLettersError):
        runner.finish()
    assert runner.committed.get(AT, 0) < 10


def test_what_was_finished_before_is_no_dead_letter_again() -> None:
    stream = Stream()
    for _ in range(3):
        stream.send_raw(Message(TOPICS.sequences, b"\x93 no batch", b"p"), at_ms=1000)
    _, first = started(stream)
    first.finish()
    second = stream.runner()
    second.start(committed=first.committed)
    second.finish()
    assert len(letters(stream)) == 3


def test_a_record_that_comes_twice_is_taken_once() -> None:
    stream = Stream()
    handler = stream.handler()
    handler.assign(0, {})
    stream.send(BLEED)
    sent = stream.sent(TOPICS.sequences)
    handler.take(0, sent)
    again = handler.take(0, sent)
    assert not again.messages
    assert handler.tally.sequences == {Kind.PROMPT: 1, Kind.RESPONSE: 1}


def test_findings_go_out_as_json_keyed_by_pool() -> None:
    stream = Stream()
    _, runner = started(stream)
    stream.send(BLEED)
    runner.finish()
    (sent,) = stream.sent(TOPICS.findings)
    assert sent.key == b"p"
    assert ("content-type", Encoding.JSON.value.encode()) in sent.headers
    assert msgspec.json.decode(sent.value or b"", type=Finding).sink.request_id == "2"


def test_every_request_has_a_row_with_or_without_tokens() -> None:
    stream = Stream()
    handler, runner = started(stream)
    stream.send([*BLEED, response("c", "4", 6, text(1, 0)), prompt("d", "5", 7, text(2, 0))])
    stream.send([prompt("x", "6", 2_000, text(6, 12)), prompt("x", "7", 2_001, text(7, 12))])
    runner.finish()
    rows = [
        row
        for sent in stream.sent(TOPICS.requests)
        for row in unpack_clear(RequestRow, sent.value or b"").records
    ]
    assert {row.request_id for row in rows} == {"1", "2", "4", "5"}
    assert handler.tally.without_tokens == {"response": 1, "prompt": 1}


def test_samples_and_events_are_checked_and_finished() -> None:
    stream = Stream()
    handler, runner = started(stream)
    sample = RuntimeSample(engine="e", kv_pool="p", sampled_at_ms=1, engine_kind="vllm")
    rejected = EngineEvent(
        kind=EventKind.REJECTED, engine="e", kv_pool="p", at_ms=5, request_id="9", tenant="a"
    )
    for topic, value in (
        (TOPICS.runtime, pack_clear([sample])), (TOPICS.runtime, b"no sample"),
        (TOPICS.engine_events, pack_clear([rejected])), (TOPICS.engine_events, b"no event"),
    ):  # fmt: skip
        stream.send_raw(Message(topic, value, b"p"), at_ms=1000)
    runner.finish()
    done = {at.topic: offset for at, offset in runner.committed.items()}
    assert done == {TOPICS.runtime: 2, TOPICS.engine_events: 2}
    assert {one.source_topic for one in letters(stream)} == {TOPICS.runtime, TOPICS.engine_events}
    assert len(stream.sent(TOPICS.requests)) == 1
    assert handler.tally.records == {TOPICS.runtime: 2, TOPICS.engine_events: 2}


def test_after_a_rotation_old_and_new_hashes_meet_their_like_and_are_counted() -> None:
    stream = Stream()
    ring = KeyRing.of(OLD_SECRET, SECRET)
    handler = stream.handler(ring=ring)
    runner = stream.runner(handler)
    runner.start()
    stream.send(BLEED)
    runner.finish()
    assert pairs(stream.findings()) == {("2", "a")}
    assert handler.intake.other_keys == 2


def test_a_partition_that_is_lost_takes_its_state_along_and_leaves_its_counts() -> None:
    stream = Stream()
    handler, runner = started(stream)
    stream.send(BLEED)
    runner.finish()
    runner.stop()
    assert not handler.held
    assert handler.totals().stats.responses == 1
    handler.assign(0, {})
    handler.take(0, stream.sent(TOPICS.sequences)[1:])
    handler.idle(0)
    assert handler.totals().stats.responses == 2
    assert handler.tally.findings.total() == 1
