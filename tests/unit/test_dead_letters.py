"""Dead letters say why and where and nothing else; too many of them stop the process."""

import ast
from typing import Any

import msgspec
import pytest

from detector.errors import RecordError, TooManyDeadLettersError
from ingest.broker import BrokerRecord
from ingest.dead_letter import REASONS, DeadLetter, dead_letters, reason_of
from ingest.dead_letter_limit import DeadLetterLimit, DeadLetterSettings
from ingest.envelope import Unpacked
from ingest.opening import open_sequences
from ingest.record_headers import EVENT_MS, SCHEMA, EventTimes, event_times
from ingest.schema import decode
from ingest.schema_records import Record
from tests.content.tree import ROOT
from tests.unit.wire import RING, hashes, record, sealed_by_hand

CONTENT = "Zylothrump"

ONLY_WRITTEN = {"batch_size", "unencodable"}
"""Reasons that stand in the way of packing, and so never reach a topic."""

READERS = (
    "ingest/schema.py",
    "ingest/schema_sequence.py",
    "ingest/envelope.py",
    "ingest/compression.py",
    "ingest/sealing.py",
    "ingest/record_batches.py",
    "ingest/opening.py",
    "detector/streaming/intake.py",
)
"""Where messages of input topics are refused."""


def message(value: bytes | None, **headers: bytes) -> BrokerRecord:
    named = tuple((name.replace("_", "-"), text) for name, text in headers.items())
    return BrokerRecord("sequences", 3, 41, b"p", value, named, 0)


def letters(source: BrokerRecord) -> list[DeadLetter]:
    opened = open_sequences(source, RING)
    made = dead_letters(source, opened, topic="dead-letter", at_ms=77)
    assert all(one.topic == "dead-letter" and one.key == b"sequences/3" for one in made)
    return [decode(DeadLetter, one.value or b"") for one in made]


def test_a_letter_says_where_the_message_lies_and_why_it_was_refused() -> None:
    source = message(b"\xc1" * 30, bleedwatch_schema=b"batch/1")
    assert [msgspec.structs.asdict(one) for one in letters(source)] == [
        {
            "schema": "dead-letter/1",
            "reason": "undecodable",
            "source_topic": "sequences",
            "source_partition": 3,
            "source_offset": 41,
            "at_ms": 77,
            "size_bytes": 30,
            "source_schema": "batch/1",
            "records_lost": None,
        }
    ]


def test_the_records_of_a_batch_are_counted_by_reason() -> None:
    bad = [msgspec.Raw(b"\xc0"), msgspec.Raw(b"\xc0"), msgspec.Raw(b"\x81\xa6schema\xa3x/1")]
    good = [msgspec.Raw(msgspec.msgpack.encode(record(request_id="good")))]
    batch = sealed_by_hand([record()] * 4, records=bad + good)
    assert [(one.reason, one.records_lost) for one in letters(message(batch))] == [
        ("schema_version", 1),
        ("wrong_type", 2),
    ]


def test_a_batch_that_cannot_be_opened_loses_as_many_as_its_index_names() -> None:
    batch = sealed_by_hand([record()] * 5, key_id="00000000")
    assert [(one.reason, one.records_lost) for one in letters(message(batch))] == [
        ("unknown_key", 5)
    ]


def test_nothing_of_the_message_is_in_its_letter() -> None:
    told = CONTENT.encode()
    for source in (
        message(told, bleedwatch_schema=told, content_type=told, other=told),
        message(msgspec.json.encode({"tenant": 5, "x": CONTENT}), content_type=b"application/json"),
        message(sealed_by_hand([record(hashes(1, 4), tenant=CONTENT)], kv_pool=CONTENT)),
        message(sealed_by_hand([record(tenant=CONTENT)], starts=[9])),
    ):
        opened = open_sequences(source, RING)
        assert opened.rejected
        for made in dead_letters(source, opened, topic="d", at_ms=1):
            assert CONTENT not in repr(made)
        assert CONTENT not in "".join(map(str, opened.rejected))


def test_a_letter_has_the_event_time_of_its_message() -> None:
    source = message(b"x", **{EVENT_MS: b"10,20"})
    (made,) = dead_letters(source, open_sequences(source, RING), topic="d", at_ms=1)
    assert event_times(made.headers) == EventTimes(10, 20)
    assert (SCHEMA, b"dead-letter/1") in made.headers


def test_every_reason_of_the_readers_is_in_the_vocabulary() -> None:
    raised = set()
    for name in READERS:
        for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "RecordError":
                assert isinstance(node.args[0], ast.Constant)
                raised.add(node.args[0].value)
    assert raised - ONLY_WRITTEN == REASONS
    assert reason_of(RecordError("a secret", "")) == "other"


GOOD: Unpacked[Record] = Unpacked((record(),))
BAD: Unpacked[Record] = Unpacked((), (RecordError("unknown_key", "", hint="turn the key"),), None)


def limit(**changes: Any) -> DeadLetterLimit:
    return DeadLetterLimit(DeadLetterSettings(**changes))


def count(one: DeadLetterLimit, what: Unpacked[Record], *, times: int, every_s: float = 0) -> None:
    for number in range(times):
        one.count("sequences", what, number * every_s)


def test_a_topic_that_is_mostly_bad_stops_the_process_and_says_why() -> None:
    one = limit(min_messages=10)
    count(one, BAD, times=9, every_s=1)
    with pytest.raises(TooManyDeadLettersError) as caught:
        one.count("sequences", BAD, 9)
    told = str(caught.value)
    for word in ("10 of the last 10", "unknown_key 10", "sequences:", "turn the key", "max_share"):
        assert word in told


def test_bad_messages_among_good_ones_never_stop_it() -> None:
    one = limit(min_messages=10)
    for at in range(1000):
        one.count("sequences", GOOD, at / 100)
        one.count("sequences", BAD, at / 100)
    with pytest.raises(TooManyDeadLettersError):
        one.count("sequences", BAD, 10)


def test_each_topic_is_judged_by_itself() -> None:
    one = limit(min_messages=10)
    for _ in range(1000):
        one.count("runtime", GOOD, 0)
    count(one, BAD, times=9)
    with pytest.raises(TooManyDeadLettersError):
        one.count("sequences", BAD, 0)


def test_what_is_older_than_the_period_is_forgotten() -> None:
    one = limit(min_messages=10)
    count(one, BAD, times=1000, every_s=7)  # 9 a minute
    one = limit(min_messages=10)
    with pytest.raises(TooManyDeadLettersError):
        count(one, BAD, times=1000, every_s=5)


def test_a_message_counts_by_the_share_of_its_records() -> None:
    one = limit(min_messages=10, max_share=0.2)
    part: Unpacked[Record] = Unpacked((record(),) * 9, BAD.rejected, 1)
    count(one, part, times=5000)
    half: Unpacked[Record] = Unpacked((record(),), BAD.rejected, 1)
    one = limit(min_messages=10, max_share=0.2)
    with pytest.raises(TooManyDeadLettersError, match="10 of the last 20"):
        count(one, half, times=20)


def test_a_share_of_one_never_stops() -> None:
    one = limit(min_messages=1, max_share=1.0)
    count(one, BAD, times=5000)
