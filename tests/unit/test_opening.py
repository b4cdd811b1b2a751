"""Messages in any form: batches, single records, MessagePack and JSON, with and without headers."""

from typing import Any

import msgspec
import pytest

from detector.errors import RecordError
from ingest.broker import BrokerRecord, Headers
from ingest.opening import open_records, open_sequences
from ingest.record_batches import pack_clear
from ingest.record_headers import EventTimes, event_times, header, headers
from ingest.schema import Encoding, encode
from ingest.schema_batches import RuntimeBatch
from ingest.schema_records import EngineEvent, EventKind, RequestRow, RuntimeSample
from tests.unit.wire import RING, hashes, record, sealed_by_hand

JSON = "application/json"
MSGPACK = "application/msgpack"
SAMPLE = RuntimeSample(engine="e", kv_pool="p", sampled_at_ms=5, engine_kind="vllm")
EVENT = EngineEvent(kind=EventKind.REJECTED, engine="e", kv_pool="p", at_ms=6)
ROW = RequestRow(
    tenant="t", request_id="r", kv_pool="p", engine="e", model="", started_at_ms=7
)  # fmt: skip
CLEAR: list[Any] = [SAMPLE, EVENT, ROW]


def message(value: bytes | None, content_type: str | None, schema: str | None) -> BrokerRecord:
    given = [("content-type", content_type), ("bleedwatch-schema", schema)]
    named = tuple((name, text.encode()) for name, text in given if text is not None)
    return BrokerRecord("t", 0, 0, None, value, named, 0)


@pytest.mark.parametrize("clear", CLEAR, ids=lambda one: one.kind_name)
def test_a_record_by_itself_in_both_encodings(clear: Any) -> None:
    kind, name = type(clear), f"{clear.kind_name}/1"
    for schema, encoding, content_type in (
        (name, Encoding.JSON, JSON),
        (None, Encoding.JSON, JSON),
        (None, Encoding.JSON, "Application/JSON; charset=utf-8"),
        (name, Encoding.MSGPACK, MSGPACK),
        (name, Encoding.MSGPACK, None),
    ):
        opened = open_records(kind, message(encode(clear, encoding), content_type, schema))
        assert (opened.records, opened.rejected, opened.lost) == ((clear,), (), 0)


@pytest.mark.parametrize("clear", CLEAR, ids=lambda one: one.kind_name)
def test_a_batch_with_and_without_headers(clear: Any) -> None:
    kind = type(clear)
    for schema in (f"{clear.kind_name}-batch/1", f"{clear.kind_name}-batch/1.3", None):
        for content_type in (MSGPACK, None):
            opened = open_records(kind, message(pack_clear([clear] * 3), content_type, schema))
            assert opened.records == (clear,) * 3


def test_a_bad_record_of_a_clear_batch_costs_only_itself() -> None:
    good, bad = SAMPLE, RuntimeSample(engine="", kv_pool="p", sampled_at_ms=5, engine_kind="vllm")
    opened = open_records(RuntimeSample, message(pack_clear([good, bad, good]), None, None))
    assert opened.records == (good, good)
    assert ([error.reason for error in opened.rejected], opened.lost) == (["wrong_type"], 1)


def test_a_clear_batch_is_of_one_pool() -> None:
    other = RuntimeSample(engine="e", kv_pool="q", sampled_at_ms=5, engine_kind="vllm")
    with pytest.raises(RecordError) as caught:
        pack_clear([SAMPLE, other])
    assert caught.value.reason == "two_pools"
    batch = RuntimeBatch(kv_pool="q", records=[msgspec.Raw(encode(one)) for one in (other, SAMPLE)])
    opened = open_records(RuntimeSample, message(encode(batch), None, None))
    assert opened.records == (other,)
    assert [error.reason for error in opened.rejected] == ["two_pools"]


def test_sequences_come_sealed_or_without_tokens() -> None:
    batch = message(sealed_by_hand([record(hashes(1, 4))]), MSGPACK, "batch/1")
    assert open_sequences(batch, RING).records[0].token_hashes == hashes(1, 4)
    bare = message(encode(record(), Encoding.JSON), JSON, "sequence/1")
    assert open_sequences(bare, RING).records[0].token_count == 0
    clear = message(encode(record(hashes(1, 4))), MSGPACK, "sequence/1")
    assert [error.reason for error in open_sequences(clear, RING).rejected] == ["not_sealed"]


@pytest.mark.parametrize(
    ("reason", "lost", "given"),
    [
        ("empty", None, message(None, None, None)),
        ("empty", None, message(b"", None, None)),
        ("content_type", None, message(b"{}", "text/plain", None)),
        ("content_type", None, message(b"{}", JSON, "runtime-batch/1")),
        ("schema_version", None, message(b"x", None, "runtime-batch/2")),
        ("schema_version", 1, message(b"x", None, "runtime/2")),
        ("schema_version", None, message(b"x", None, "engine-event/1")),
        ("schema_version", None, message(pack_clear([EVENT]), None, None)),
        ("undecodable", 1, message(b"{", JSON, None)),
        ("too_large", None, message(bytes(2**21 + 1), None, None)),
    ],
)
def test_what_cannot_be_opened_has_its_reason(
    reason: str, lost: int | None, given: BrokerRecord
) -> None:
    opened = open_records(RuntimeSample, given)
    assert [error.reason for error in opened.rejected] == [reason]
    assert (opened.records, opened.lost) == ((), lost)


def test_headers_round_trip() -> None:
    times = EventTimes(-5, 1_764_457_200_000)
    made = headers(MSGPACK, "batch/1", times, "no trace parent")
    assert event_times(made) == times
    assert [name for name, _ in made] == [
        "content-type", "bleedwatch-schema", "bleedwatch-event-ms",
    ]  # fmt: skip
    assert header((*made, ("content-type", b"x")), "content-type") == "x"


@pytest.mark.parametrize(
    "value",
    [b"", b"1", b"2,1", b"1,2,3", b"1, 2", b"9" * 400, b"1,999999999999999", b"\xff,1", b"1,2\n"],
)
def test_event_times_that_cannot_be_are_none(value: bytes) -> None:
    given: Headers = (("bleedwatch-event-ms", value),)
    assert event_times(given) is None
    assert event_times(()) is None
