"""Packing: by pool and key, by size or time; order kept, limits held, nothing lost."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from detector.model import Role, Span
from ingest.broker import BrokerRecord, Message
from ingest.envelope import read_index, unpack
from ingest.opening import open_records, open_sequences
from ingest.packing import MAX_HELD_BYTES, Packer
from ingest.packing_forms import ClearForm, SealedForm
from ingest.packing_settings import LARGEST_RECORD_BYTES, PackingSettings
from ingest.partitioning import message_bytes
from ingest.record_headers import EventTimes, event_times, header
from ingest.schema_batches import MAX_BATCH_RECORDS
from ingest.schema_records import EngineEvent, EventKind, RequestRow, RuntimeSample, SequenceRecord
from ingest.sealing import KeyRing
from tests.unit.wire import OLD_SECRET, RING, SECRET, hashes, record

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def packer(ring: KeyRing = RING, **changes: Any) -> Packer[SequenceRecord]:
    return Packer("sequences", SealedForm(lambda: ring), PackingSettings(**changes))


def ids(messages: list[Message], ring: KeyRing = RING) -> list[list[str]]:
    opened = [unpack(message.value or b"", ring) for message in messages]
    assert not any(one.rejected for one in opened)
    return [[one.request_id for one in batch.records] for batch in opened]


def arrived(message: Message) -> BrokerRecord:
    return BrokerRecord(message.topic, 0, 0, message.key, message.value, message.headers, 0)


def test_a_batch_waits_for_its_time_or_its_size() -> None:
    one = packer(target_bytes=10_000)
    assert one.next_due_s is None
    assert one.add(record(hashes(1, 1000), request_id="a"), 5.0) == []
    assert one.add(record(hashes(2, 1000), request_id="b"), 5.1) == []
    assert one.next_due_s == 5.2
    assert one.due(5.19) == []
    assert ids(one.due(5.2)) == [["a", "b"]]
    assert one.next_due_s is None
    one.add(record(hashes(1, 2000), request_id="c"), 6)
    assert ids(one.add(record(hashes(2, 2000), request_id="d"), 6)) == [["c"]]
    assert ids(one.add(record(hashes(3, 2600), request_id="e"), 6)) == [["d"], ["e"]]
    assert one.drain() == []


def test_pools_and_keys_are_kept_apart_and_the_key_is_the_pool() -> None:
    ring = KeyRing.of(SECRET, OLD_SECRET)
    old = KeyRing.of(OLD_SECRET).key_id
    one = packer(ring)
    one.add(record(request_id="a", kv_pool="p"), 0)
    one.add(record(request_id="b", kv_pool="q"), 0)
    one.add(record(request_id="c", kv_pool="p", key_id=old), 0)
    one.add(record(request_id="d", kv_pool="p", key_id=ring.key_id), 0)
    sent = one.drain()
    assert ids(sent, ring) == [["a", "d"], ["b"], ["c"]]
    assert [message.key for message in sent] == [b"p", b"q", b"p"]
    assert [read_index(message.value or b"").key_id for message in sent] == [
        ring.key_id, ring.key_id, old,
    ]  # fmt: skip


def test_the_headers_tell_what_is_in_a_batch_and_when_it_was() -> None:
    one = packer()
    one.add(record(started_at_ms=2_000, ended_at_ms=9_000), 0, TRACE)
    one.add(record(started_at_ms=1_000, ended_at_ms=3_000), 0, TRACE)
    (sent,) = one.drain()
    assert header(sent.headers, "content-type") == "application/msgpack"
    assert header(sent.headers, "bleedwatch-schema") == "batch/1"
    assert event_times(sent.headers) == EventTimes(1_000, 9_000)
    assert header(sent.headers, "traceparent") == TRACE
    one.add(record(), 0, TRACE)
    one.add(record(), 0)
    assert header(one.drain()[0].headers, "traceparent") is None


def test_what_cannot_be_packed_is_counted_and_costs_nothing_else() -> None:
    one = packer()
    one.add(record(request_id="a"), 0)
    for bad in (
        record(ended_at_ms=0),
        record(tenant="\ud800"),
        record(key_id="ffffffff"),
        record(hashes(1, 10), token_count=9),
        record(model="m" * 1_000_000),
    ):
        assert one.add(bad, 0) == []
    one.add(record(request_id="b"), 0)
    assert ids(one.drain()) == [["a", "b"]]
    assert one.refused == {
        "time_order": 1, "unencodable": 1, "unknown_key": 1, "token_count": 1, "too_large": 1,
    }  # fmt: skip


def test_a_key_that_is_gone_when_its_batch_is_due_is_counted() -> None:
    rings = [KeyRing.of(SECRET, OLD_SECRET)]
    one = Packer("s", SealedForm(lambda: rings[-1]), PackingSettings())
    one.add(record(key_id=KeyRing.of(OLD_SECRET).key_id), 0)
    rings.append(RING)
    assert one.drain() == []
    assert one.refused == {"unknown_key": 1}


def test_no_message_passes_the_limit_and_nothing_is_lost() -> None:
    limit = LARGEST_RECORD_BYTES + 8_192
    one = packer(target_bytes=limit, message_limit_bytes=limit)
    given_ = [
        record(hashes(number, tokens), request_id=str(number))
        for number, tokens in enumerate([131_072, 100_000, 7, 131_072, 60_000, 60_000, 60_000, 1])
    ]
    sent = [message for each in given_ for message in one.add(each, 0)] + one.drain()
    assert all(message_bytes(message) <= limit for message in sent)
    assert [one for batch in ids(sent) for one in batch] == [one.request_id for one in given_]
    assert not one.refused


def test_the_largest_record_fits_the_lowest_limit() -> None:
    limit = LARGEST_RECORD_BYTES + 8_192
    name = "\U0001f600" * 512
    spans = tuple(Span(Role.ASSISTANT, at, at + 4) for at in range(65_536, 131_072, 4))
    largest = record(
        hashes(1, 131_072), tenant=name, request_id=name, kv_pool=name, engine=name, model=name,
        account=name, parent_id=name, finish_reason=name, session=name, end_user=name, spans=spans,
    )  # fmt: skip
    one = packer(message_limit_bytes=limit)
    (sent,) = one.add(largest, 0)
    assert limit - 15_000 < message_bytes(sent) <= limit
    assert ids([sent]) == [[name]]


def test_a_batch_above_the_limit_after_all_is_sent_in_halves() -> None:
    limit = LARGEST_RECORD_BYTES + 8_192
    one = packer(target_bytes=limit, message_limit_bytes=limit)
    given_ = [record(hashes(number, 32), request_id=str(number)) for number in range(3_800)]
    sent = [message for each in given_ for message in one.add(each, 0)] + one.drain()
    assert all(message_bytes(message) <= limit for message in sent)
    left = ids(sent)
    assert len(left[0]) == len(left[1]) > 1_700  # offsets and counts are above what was aimed at
    assert [one for batch in left for one in batch] == [one.request_id for one in given_]


def test_a_batch_never_has_more_records_than_may_be_read() -> None:
    one = packer(target_bytes=1_000_000)
    sent = [message for _ in range(MAX_BATCH_RECORDS + 1) for message in one.add(record(), 0)]
    assert sum(map(len, ids(sent + one.drain()))) == MAX_BATCH_RECORDS + 1


def test_what_is_held_is_bounded_over_all_pools() -> None:
    one = packer()
    body = hashes(1, 50_000)
    pools = MAX_HELD_BYTES // len(body)
    held = [one.add(record(body, kv_pool=str(number)), 0) for number in range(pools + 1)]
    assert sum(map(len, held[: pools - 5])) == 0
    assert [message.key for each in held for message in each][:1] == [b"0"]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.sampled_from("pqr"), st.integers(0, 400), st.floats(0, 0.3)), max_size=40)
)
def test_every_record_leaves_once_in_order_and_in_time(steps: list[tuple[str, int, float]]) -> None:
    one = packer(target_bytes=1_000)
    now = 0.0
    given_: dict[str, list[tuple[str, float]]] = {"p": [], "q": [], "r": []}
    left: dict[str, list[str]] = {"p": [], "q": [], "r": []}

    def take(messages: list[Message]) -> None:
        for message, batch in zip(messages, ids(messages), strict=True):
            pool = (message.key or b"").decode()
            left[pool] += batch

    for number, (pool, tokens, pause) in enumerate(steps):
        now += pause
        take(one.due(now))
        for name, entered in given_.items():
            assert all(now - at < 0.2 for _, at in entered[len(left[name]) :])
        given_[pool].append((str(number), now))
        body = hashes(number, tokens)
        take(one.add(record(body, request_id=str(number), kv_pool=pool), now))
    take(one.drain())
    assert left == {pool: [name for name, _ in entered] for pool, entered in given_.items()}


CLEAR: list[tuple[Any, EventTimes]] = [
    (
        RuntimeSample(engine="e", kv_pool="p", sampled_at_ms=5, engine_kind="vllm"),
        EventTimes(5, 5),
    ),
    (
        EngineEvent(kind=EventKind.REJECTED, engine="e", kv_pool="p", at_ms=6),
        EventTimes(6, 6),
    ),
    (
        RequestRow(
            tenant="t", request_id="r", kv_pool="p", engine="e", model="", started_at_ms=7,
            ended_at_ms=9,
        ),
        EventTimes(7, 9),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("clear", "times"), CLEAR, ids=["runtime", "event", "row"])
def test_records_without_tokens_are_packed_in_the_clear(clear: Any, times: EventTimes) -> None:
    one: Packer[Any] = Packer("topic", ClearForm(type(clear)), PackingSettings())
    one.add(clear, 0)
    one.add(clear, 0)
    (sent,) = one.drain()
    assert event_times(sent.headers) == times
    assert header(sent.headers, "bleedwatch-schema") == f"{clear.kind_name}-batch/1"
    assert open_records(type(clear), arrived(sent)).records == (clear, clear)


def test_a_sealed_message_opens_as_it_arrives() -> None:
    one = packer()
    one.add(record(hashes(1, 10)), 0)
    opened = open_sequences(arrived(one.drain()[0]), RING)
    assert [found.token_hashes for found in opened.records] == [hashes(1, 10)]


@pytest.mark.parametrize(
    "changes",
    [
        {"message_limit_bytes": 500_000},
        {"message_limit_bytes": 2**21 + 1},
        {"target_bytes": 0},
        {"target_bytes": 1_000_001},
        {"linger_ms": 0},
    ],
)
def test_settings_that_could_not_be_kept_are_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        PackingSettings(**changes)
