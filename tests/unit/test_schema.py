"""Wire records: both encodings round-trip; every bound has a reason; unknown fields are ignored."""

import contextlib
import json
import traceback
from typing import Any

import msgspec
import numpy as np
import pytest

from detector.errors import RecordError
from detector.model import EngineId, Kind, PoolId, RequestId, Role, Sequence, Span, TenantId
from ingest.limits import MAX_TIME_MS
from ingest.schema import MAX_RECORD_BYTES, Encoding, check_version, decode, encode
from ingest.schema_records import (
    EngineEvent,
    EngineRole,
    EventKind,
    Quality,
    Record,
    RequestRow,
    RuntimeSample,
    SequenceRecord,
)
from ingest.schema_sequence import from_record, to_record

SEQUENCE = Sequence(
    tenant=TenantId("acme"),
    request_id=RequestId("r"),
    kv_pool=PoolId("p"),
    engine=EngineId("e"),
    model="m",
    kind=Kind.PROMPT,
    started_at_ms=-5,
    ended_at_ms=-5,
    token_hashes=np.array([1, 2**32 - 1, 77], dtype=np.uint32),
    key_id="0a1b2c3d",
    prompt_token_count=3,
    spans=(Span(Role.TEMPLATE, 0, 1), Span(Role.USER, 1, 3)),
)
RECORDS: list[Any] = [
    to_record(SEQUENCE),
    RuntimeSample(
        engine="e",
        kv_pool="p",
        sampled_at_ms=1,
        engine_kind="vllm",
        role=EngineRole.BOTH,
        used_tokens=0,
        unreleased_quality=Quality.EXACT,
        pool_usage_ratio=0.5,
    ),
    EngineEvent(kind=EventKind.CLEAR_FAILED, engine="e", kv_pool="p", at_ms=1, detail="busy"),
    RequestRow(
        tenant="t",
        request_id="r",
        kv_pool="p",
        engine="e",
        model="",
        started_at_ms=1,
        flags=("late",),
    ),
]


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.kind_name)
def test_records_round_trip(record: Any, encoding: Encoding) -> None:
    data = encode(record, encoding)
    back = decode(type(record), data, encoding)
    assert encode(back, encoding) == data
    assert msgspec.structs.asdict(back) == msgspec.structs.asdict(record)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.kind_name)
def test_both_encodings_have_the_same_fields(record: Record) -> None:
    packed = msgspec.msgpack.decode(encode(record))
    text = json.loads(encode(record, Encoding.JSON))
    assert list(packed) == list(text)


def test_a_sequence_comes_back_equal() -> None:
    back = from_record(decode(SequenceRecord, encode(to_record(SEQUENCE))))
    for name in Sequence.__struct_fields__:
        ours, theirs = getattr(SEQUENCE, name), getattr(back, name)
        assert np.array_equal(ours, theirs) if name == "token_hashes" else ours == theirs, name
    assert back.token_hashes.dtype == np.uint32


def test_hashes_are_little_endian_on_every_machine() -> None:
    big = SEQUENCE.token_hashes.astype(">u4")
    record = to_record(msgspec.structs.replace(SEQUENCE, token_hashes=big))
    assert record.token_hashes[:8] == b"\x01\0\0\0\xff\xff\xff\xff"


def _changed(record: Record, **changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(record, builtin_types=(bytes,))
    return {name: value for name, value in (plain | changes).items() if value is not ...}


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("wrong_type", {"tenant": ...}),
        ("wrong_type", {"tenant": ""}),
        ("wrong_type", {"tenant": "t" * 513}),
        ("wrong_type", {"tenant": 7}),
        ("wrong_type", {"kind": "secret-word"}),
        ("wrong_type", {"started_at_ms": MAX_TIME_MS + 1}),
        ("wrong_type", {"started_at_ms": 1.5}),
        ("wrong_type", {"status": 1000}),
        ("wrong_type", {"part": -1}),
        ("wrong_type", {"parts": 34}),
        ("wrong_type", {"token_count": -1}),
        ("wrong_type", {"spans": [["user", 0, 1]] * 16_385}),
        ("wrong_type", {"spans": [["nobody", 0, 1]]}),
        ("wrong_type", {"token_hashes": [1, 2]}),
        ("time_order", {"ended_at_ms": -6}),
        ("token_bytes", {"token_hashes": b"\0" * 11}),
        ("token_count", {"token_count": 4}),
        ("token_count", {"token_hashes": bytes(4 * 131_073), "token_count": 131_073}),
        ("part_range", {"part": 1}),
        ("prompt_length", {"prompt_token_count": 2}),
        ("prompt_length", {"prompt_token_count": 4}),
        ("span_range", {"spans": [["user", 0, 4]]}),
        ("span_range", {"spans": [["user", 2, 2]]}),
        ("span_range", {"spans": [["user", -1, 2]]}),
        ("span_range", {"spans": [["user", 0, 2], ["user", 1, 3]]}),
        ("schema_version", {"schema": "sequence/2"}),
        ("schema_version", {"schema": "runtime/1"}),
        ("schema_version", {"schema": "sequence"}),
        ("schema_version", {"schema": "sequence/2", "tenant": 7}),
    ],
)
def test_a_broken_bound_has_its_reason_and_shows_no_value(
    reason: str, changes: dict[str, Any]
) -> None:
    data = msgspec.msgpack.encode(_changed(to_record(SEQUENCE), **changes))
    with pytest.raises(RecordError) as caught:
        decode(SequenceRecord, data)
    assert caught.value.reason == reason
    assert "secret-word" not in "".join(traceback.format_exception(caught.value))


def test_the_field_at_fault_is_named() -> None:
    data = msgspec.msgpack.encode(_changed(to_record(SEQUENCE), tenant=7))
    with pytest.raises(RecordError, match="field tenant"):
        decode(SequenceRecord, data)


@pytest.mark.parametrize("ratio", [float("nan"), float("inf"), -0.1, 2.1])
def test_a_ratio_is_a_number_in_range(ratio: float) -> None:
    data = msgspec.msgpack.encode(_changed(RECORDS[1], pool_usage_ratio=ratio))
    with pytest.raises(RecordError):
        decode(RuntimeSample, data)


@pytest.mark.parametrize(
    ("reason", "data", "encoding"),
    [
        ("undecodable", b"", Encoding.MSGPACK),
        ("undecodable", b"\xc1", Encoding.MSGPACK),
        ("undecodable", b"{", Encoding.JSON),
        ("undecodable", b"\xff\xfe", Encoding.JSON),
        ("wrong_type", b"[]", Encoding.JSON),
        ("wrong_type", b"\x90", Encoding.MSGPACK),
        ("too_deep", b'{"x":' + b"[" * 200_000, Encoding.JSON),
        ("too_deep", b"\x81\xa1x" + b"\x91" * 200_000, Encoding.MSGPACK),
        ("too_large", bytes(MAX_RECORD_BYTES + 1), Encoding.JSON),
    ],
)
def test_what_cannot_be_decoded_has_its_reason(
    reason: str, data: bytes, encoding: Encoding
) -> None:
    with pytest.raises(RecordError) as caught:
        decode(EngineEvent, data, encoding)
    assert caught.value.reason == reason


def test_unknown_fields_and_minor_versions_are_accepted() -> None:
    data = msgspec.msgpack.encode(_changed(RECORDS[2], schema="engine-event/1.7", colour=[1, {}]))
    assert decode(EngineEvent, data).kind is EventKind.CLEAR_FAILED
    check_version("engine-event/1", "engine-event")
    check_version("", "engine-event")


def test_detail_is_a_word_and_no_text() -> None:
    data = msgspec.msgpack.encode(_changed(RECORDS[2], detail="Request failed: hello"))
    with pytest.raises(RecordError):
        decode(EngineEvent, data)


@pytest.mark.parametrize("encoding", list(Encoding))
def test_what_no_encoding_carries_is_a_record_error(encoding: Encoding) -> None:
    row = msgspec.structs.replace(RECORDS[3], tenant="\ud800")
    with pytest.raises(RecordError):
        encode(row, encoding)


def test_a_repr_shows_no_hashes() -> None:
    record = to_record(msgspec.structs.replace(SEQUENCE, token_hashes=np.array([987_654_321])))
    assert "987654321" not in repr(record)
    assert "token_hashes" not in repr(record)


def test_random_damage_raises_nothing_but_record_errors() -> None:
    random = np.random.default_rng(7)
    for encoding in Encoding:
        for record in RECORDS:
            data = encode(record, encoding)
            for _ in range(400):
                broken = bytearray(data[: random.integers(0, len(data) + 1)])
                for _ in range(random.integers(0, 4)):
                    if broken:
                        broken[random.integers(len(broken))] = random.integers(256)
                with contextlib.suppress(RecordError):
                    decode(type(record), bytes(broken), encoding)
