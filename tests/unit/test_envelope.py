"""Sealed batches: every field comes back; what is bad has a reason and costs only itself."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.errors import RecordError
from detector.model import Kind, Role, Span
from ingest.envelope import pack, read_index, unpack
from ingest.schema import encode
from ingest.schema_batches import MAX_BATCH_RECORDS, MAX_BATCH_TOKENS, Frame, SequenceBatch
from ingest.schema_records import SequenceRecord
from ingest.sealing import KeyRing
from tests.unit.wire import OLD_SECRET, RING, SECRET, hashes, record, sealed_by_hand

NAMES = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=12)
TIMES = st.integers(-(2**40), 2**45)


@st.composite
def records(draw: st.DrawFn) -> SequenceRecord:
    tokens = draw(st.binary(max_size=200).map(lambda raw: raw[: len(raw) // 4 * 4]))
    count = len(tokens) // 4
    ends = sorted(draw(st.sets(st.integers(1, count), max_size=5))) if count else []
    spans = tuple(
        Span(draw(st.sampled_from(list(Role))), start, end)
        for start, end in zip([0, *ends], ends, strict=False)
    )
    started = draw(TIMES)
    return record(
        tokens,
        tenant=draw(NAMES),
        request_id=draw(NAMES),
        kind=draw(st.sampled_from(list(Kind))),
        started_at_ms=started,
        ended_at_ms=started + draw(st.integers(0, 10**6)),
        account=draw(st.none() | NAMES),
        session=draw(st.none() | NAMES),
        status=draw(st.none() | st.integers(0, 999)),
        gateway_cache_hit=draw(st.booleans()),
        spans=spans,
    )


@settings(deadline=None)
@given(st.lists(records(), min_size=1, max_size=12))
def test_a_batch_comes_back_in_order_with_every_field(given_: list[SequenceRecord]) -> None:
    back = unpack(pack(given_, RING), RING)
    assert (back.rejected, back.lost) == ((), 0)
    named = [msgspec.structs.replace(one, key_id=RING.key_id) for one in given_]
    assert [msgspec.structs.asdict(one) for one in back.records] == [
        msgspec.structs.asdict(one) for one in named
    ]


def test_the_index_is_readable_without_a_secret_and_holds_no_hashes() -> None:
    given_ = [record(hashes(1, 50)), record(hashes(2, 30), tenant="globex")]
    index = read_index(pack(given_, RING))
    entries = [msgspec.msgpack.decode(raw) for raw in index.records]
    assert [one["tenant"] for one in entries] == ["acme", "globex"]
    assert (index.kv_pool, index.key_id, index.counts) == ("p", RING.key_id, [50, 30])
    assert not any("token_hashes" in one for one in entries)


def test_no_frame_holds_hashes_of_two_tenants() -> None:
    same = hashes(1, 500)
    apart = [record(same, tenant="acme"), record(hashes(2, 500), tenant="globex")]
    guess = [record(same, tenant="acme"), record(same, tenant="globex")]
    assert len(pack(apart, RING)) == len(pack(guess, RING))
    own = [record(same), record(same)]
    assert len(pack(own, RING)) < len(pack(guess, RING)) - 1_000


def test_two_batches_of_the_same_records_share_no_key_stream() -> None:
    one, other = (msgspec.msgpack.decode(pack([record(hashes(1, 50))], RING)) for _ in range(2))
    assert one["salt"] != other["salt"]
    assert one["nonce"] != other["nonce"]
    assert one["sealed"][:16] != other["sealed"][:16]


@pytest.mark.parametrize("field", ["index", "salt", "nonce", "sealed"])
def test_a_changed_bit_anywhere_breaks_the_seal(field: str) -> None:
    batch = msgspec.msgpack.decode(
        pack([record(hashes(1, 20), model="model-x")], RING), type=SequenceBatch
    )
    at = batch.index.index(b"model-x") if field == "index" else 3
    bent = bytearray(getattr(batch, field))
    bent[at] ^= 1
    back = unpack(encode(msgspec.structs.replace(batch, **{field: bytes(bent)})), RING)
    assert [error.reason for error in back.rejected] == ["seal_broken"]
    assert (back.records, back.lost) == ((), 1)


def test_a_batch_of_an_earlier_secret_opens_while_the_ring_holds_it() -> None:
    old = KeyRing.of(OLD_SECRET)
    data = pack([record(hashes(1, 20))], old)
    rotated = KeyRing.of(SECRET, OLD_SECRET)
    assert unpack(data, rotated).records[0].key_id == old.key_id
    assert [error.reason for error in unpack(data, RING).rejected] == ["unknown_key"]
    again = pack(unpack(data, rotated).records, rotated)
    assert read_index(again).key_id == old.key_id


def _good() -> SequenceRecord:
    return record(hashes(7, 5), request_id="good")


@pytest.mark.parametrize(
    ("reason", "bad"),
    [
        ("wrong_type", msgspec.Raw(b"\xc0")),
        ("wrong_type", msgspec.Raw(msgspec.msgpack.encode({"tenant": 5}))),
        ("undecodable", msgspec.Raw(b"\x81\xa6tenant\xa1\xff")),
        ("schema_version", msgspec.Raw(encode(record(schema="sequence/9")))),
        ("two_pools", msgspec.Raw(encode(record(kv_pool="q")))),
        ("two_keys", msgspec.Raw(encode(record(key_id="ffffffff")))),
        ("not_sealed", msgspec.Raw(encode(record(hashes(1, 3))))),
        ("token_count", msgspec.Raw(encode(record(token_count=3)))),
        ("time_order", msgspec.Raw(encode(record(ended_at_ms=0)))),
        ("span_range", msgspec.Raw(encode(record(spans=(Span(Role.USER, 0, 1),))))),
    ],
)
def test_a_bad_record_costs_only_itself(reason: str, bad: msgspec.Raw) -> None:
    good = [_good(), record(), _good()]
    raw = [msgspec.Raw(encode(msgspec.structs.replace(_good(), token_hashes=b"")))] * 2
    back = unpack(sealed_by_hand(good, records=[raw[0], bad, raw[1]]), RING)
    assert [one.request_id for one in back.records] == ["good", "good"]
    assert [one.token_hashes for one in back.records] == [hashes(7, 5)] * 2
    assert [error.reason for error in back.rejected] == [reason]
    assert back.lost == 1


@pytest.mark.parametrize(
    ("reason", "index"),
    [
        ("offset_range", {"starts": [0, 4]}),
        ("offset_range", {"starts": [0, 6]}),
        ("offset_range", {"starts": [0]}),
        ("offset_range", {"counts": [5, 4]}),
        ("offset_range", {"counts": [5, 6]}),
        ("offset_range", {"counts": [5, 5, 0]}),
        ("offset_range", {"starts": [5, 5]}),
        ("frame_range", {"frames": [Frame(48, 10)]}),
        ("frame_range", {"frames": []}),
        ("wrong_type", {"starts": [0, -1]}),
        ("wrong_type", {"counts": [5, MAX_BATCH_TOKENS + 1]}),
        ("wrong_type", {"kv_pool": ""}),
        ("wrong_type", {"key_id": "no-key"}),
        ("wrong_type", {"records": []}),
        ("wrong_type", {"records": [msgspec.Raw(b"\xc0")] * (MAX_BATCH_RECORDS + 1)}),
        ("unknown_key", {"key_id": "00000000"}),
        ("schema_version", {"schema": "batch/2"}),
    ],
)
def test_a_batch_that_contradicts_itself_is_refused_whole(
    reason: str, index: dict[str, Any]
) -> None:
    back = unpack(sealed_by_hand([_good(), _good()], **index), RING)
    assert [error.reason for error in back.rejected] == [reason]
    assert back.records == ()


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x80", b"\x91" * 100_000, bytes(2**21 + 1)])
def test_what_is_no_batch_is_refused(data: bytes) -> None:
    back = unpack(data, RING)
    assert (back.records, back.lost, len(back.rejected)) == ((), None, 1)
    with pytest.raises(RecordError):
        read_index(data)


@pytest.mark.parametrize(
    ("reason", "given_"),
    [
        ("batch_size", []),
        ("batch_size", [record()] * (MAX_BATCH_RECORDS + 1)),
        ("batch_size", [record(bytes(4 * 131_072))] * 3),
        ("two_pools", [record(), record(kv_pool="q")]),
        ("two_keys", [record(), record(key_id="ffffffff")]),
        ("unknown_key", [record(key_id="ffffffff")]),
        ("time_order", [record(ended_at_ms=0)]),
        ("unencodable", [record(tenant="\ud800")]),
    ],
)
def test_what_cannot_be_packed_has_its_reason(reason: str, given_: list[SequenceRecord]) -> None:
    with pytest.raises(RecordError) as caught:
        pack(given_, RING)
    assert caught.value.reason == reason
