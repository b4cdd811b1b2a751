"""KV events of both engines and both encodings are read alike; hostile payloads are refused."""

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.errors import RecordError
from ingest.kv_events.decode import Cleared, KvBatch, Removed, Stored, decode_batch
from tests.unit.kv_publisher import batch, stored


def one(payload: bytes) -> Stored:
    (event,) = decode_batch(payload).events
    assert isinstance(event, Stored)
    return event


def test_a_map_of_vllm() -> None:
    keys = [["lora-a", "image-hash", ["x", 3], "salt-acme"], None]
    event = stored(
        [b"\x01" * 32, b"\x02" * 32],
        list(range(8)),
        extra_keys=keys,
        lora_name="lora-a",
        group_idx=1,
        session_id="s-1",
        kv_cache_spec_kind="full_attention",
    )
    read = one(batch(event))
    assert read.blocks == (b"\x01" * 32, b"\x02" * 32)
    assert read.token_ids.tolist() == list(range(8))
    assert (read.parent, read.block_size, read.medium, read.group) == (None, 4, "GPU", 1)
    assert (read.salt, read.salt_known, read.salt_is_inherited) == ("salt-acme", True, True)
    assert read.session == "s-1"


@pytest.mark.parametrize(
    ("keys", "salt"),
    [([None, None], None), ([["salt"], None], "salt"), ([["lora-a"], None], None), ([], None)],
)
def test_the_salt_among_the_extra_keys(keys: list[Any], salt: str | None) -> None:
    event = stored([1, 2], list(range(8)), extra_keys=keys, lora_name="lora-a")
    assert one(batch(event)).salt == salt


def test_a_map_of_sglang() -> None:
    read = one(batch(stored([-5, 7], [1, 2], size=1, parent=-9, cache_salt="salt-acme")))
    assert read.blocks == (2**64 - 5, 7)
    assert read.parent == 2**64 - 9
    assert (read.salt, read.salt_known, read.salt_is_inherited) == ("salt-acme", True, False)
    assert one(batch(stored([-5, 7], [1, 2], size=1))).salt_known


@pytest.mark.parametrize("more", [[], [None], [None, "CPU"]])
def test_an_array_of_older_releases(more: list[Any]) -> None:
    read = one(batch(["BlockStored", [1, 2], 9, [3, 4, 5, 6], 2, *more]))
    assert (read.blocks, read.parent, read.block_size) == ((1, 2), 9, 2)
    assert read.token_ids.tolist() == [3, 4, 5, 6]
    assert read.medium == (more[1] if len(more) > 1 else "GPU")
    assert not read.salt_known


def test_an_array_with_extra_keys() -> None:
    event = ["BlockStored", [1], None, [3, 4], 2, None, "GPU", None, [["salt-acme"]]]
    assert one(batch(event)).salt == "salt-acme"


def test_the_other_events_in_both_encodings() -> None:
    payload = batch(
        {"type": "BlockRemoved", "block_hashes": [1], "medium": "CPU", "group_idx": 2},
        ["BlockRemoved", [1, 2], "DISK"],
        ["BlockRemoved", [3]],
        {"type": "AllBlocksCleared"},
        ["AllBlocksCleared"],
        at_s=12.5,
        rank=3,
    )
    assert decode_batch(payload) == KvBatch(
        12_500,
        3,
        (
            Removed((1,), "CPU", 2),
            Removed((1, 2), "DISK", 0),
            Removed((3,), "GPU", 0),
            Cleared(),
            Cleared(),
        ),
        (),
    )


def test_a_batch_may_be_a_map() -> None:
    payload = msgspec.msgpack.encode({"ts": 1.0, "events": [{"type": "AllBlocksCleared"}]})
    assert decode_batch(payload) == KvBatch(1000, 0, (Cleared(),), ())


def test_blocks_without_tokens_are_read() -> None:
    assert len(one(batch(stored([1, 2], [], size=16))).token_ids) == 0


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (5, "wrong_type"),
        ([], "wrong_type"),
        ({}, "unknown_event"),
        (["BlockMoved", 1], "unknown_event"),
        ([["BlockStored"]], "unknown_event"),
        ({"type": "BlockStored"}, "wrong_type"),
        (["BlockStored", [1]], "wrong_type"),
        ({"type": "BlockRemoved", "block_hashes": 7, "medium": "GPU"}, "wrong_type"),
        ({"type": "BlockRemoved", "block_hashes": [True]}, "wrong_type"),
        ({"type": "BlockRemoved", "block_hashes": [1.5]}, "wrong_type"),
        ({"type": "BlockRemoved", "block_hashes": [b""]}, "wrong_type"),
        ({"type": "BlockRemoved", "block_hashes": [b"x" * 65]}, "wrong_type"),
        ({"type": "BlockRemoved", "block_hashes": [1], "group_idx": -1}, "wrong_type"),
        (stored([1, 2], [1, 2, 3]), "token_count"),
        (stored([1], [1, 2, 3, -4]), "token_id_range"),
        (stored([1], [1, 2, 3, 2**20]), "token_id_range"),
        (stored([1], [1, 2, 3, "4"]), "token_id_range"),  # type: ignore[list-item]
        (stored([1], [], size=-1), "wrong_type"),
        (stored([1], [], size=2**30), "wrong_type"),
        (stored([1], [1, 2, 3, 4], session_id=7), "wrong_type"),
        (stored([1], [1, 2, 3, 4], cache_salt="s" * 513), "wrong_type"),
    ],
)
def test_a_broken_event_is_counted_and_the_others_are_read(event: Any, reason: str) -> None:
    read = decode_batch(batch(event, {"type": "AllBlocksCleared"}))
    assert read.broken == (reason,)
    assert read.events == (Cleared(),)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "undecodable"),
        (b"\xc1", "undecodable"),
        (b"\x91" * 100_000 + b"\x01", "undecodable"),
        (b"\xdf\xff\xff\xff\xff", "undecodable"),
        (msgspec.msgpack.encode(5), "wrong_type"),
        (msgspec.msgpack.encode([1.0]), "wrong_type"),
        (msgspec.msgpack.encode([1.0, 5]), "wrong_type"),
        (msgspec.msgpack.encode([1.0, [], "0"]), "wrong_type"),
        (msgspec.msgpack.encode({"events": []}), "time_range"),
        (msgspec.msgpack.encode([float("nan"), []]), "time_range"),
        (msgspec.msgpack.encode([float("inf"), []]), "time_range"),
        (msgspec.msgpack.encode([True, []]), "time_range"),
        (msgspec.msgpack.encode([1e300, []]), "time_range"),
    ],
)
def test_what_is_no_batch_is_refused(payload: bytes, reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        decode_batch(payload)
    assert caught.value.reason == reason


SECRET_ID = 777_777


def test_nothing_shows_ids_salts_or_sessions() -> None:
    read = one(batch(stored([1], [1, 2, 3, SECRET_ID], cache_salt="salt-x", session_id="s-y")))
    assert str(SECRET_ID) not in repr(read)
    assert "salt-x" not in repr(read)
    assert "s-y" not in repr(read)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 300), st.integers(0, 255))
def test_no_payload_raises_anything_else(junk: bytes, at: int, byte: int) -> None:
    good = bytearray(
        batch(stored([1, 2], list(range(8)), extra_keys=[["s"], None]), ["BlockRemoved", [1]])
    )
    good[at % len(good)] = byte
    for payload in (junk, bytes(good), bytes(good[:at])):
        with suppress(RecordError):
            decode_batch(payload)
