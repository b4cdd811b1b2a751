"""Hostile messages, made from valid ones by a stranger who flips bits or by who has the secret."""

import random
from collections.abc import Callable
from typing import Any, Final

import msgspec

from ingest.broker import BrokerRecord, Headers
from ingest.envelope import ASSOCIATED, pack
from ingest.record_batches import pack_clear
from ingest.schema import Encoding, encode
from ingest.schema_batches import SequenceBatch
from ingest.schema_records import (
    EngineEvent,
    EventKind,
    Record,
    RequestRow,
    RuntimeSample,
    SequenceRecord,
)
from ingest.sealing import Sealed
from tests.unit.wire import RING, hashes, record

CANARY = "Zylothrump"

SEQUENCES = [
    record(hashes(number, 8 * number), tenant=CANARY, request_id=f"{CANARY}-{number}")
    for number in range(5)
]
SAMPLE = RuntimeSample(engine="e", kv_pool="p", sampled_at_ms=5, engine_kind="vllm", used_tokens=4)
EVENT = EngineEvent(kind=EventKind.REJECTED, engine="e", kv_pool="p", at_ms=6, tenant=CANARY)
ROW = RequestRow(
    tenant=CANARY, request_id="r", kv_pool="p", engine="e", model="", started_at_ms=7
)  # fmt: skip

CLEAR_BATCHES = [pack_clear([SAMPLE] * 3), pack_clear([EVENT] * 3), pack_clear([ROW] * 3)]

ODD: list[Any] = [
    *(None, True, 0, -1, 2**31, 2**63, 2**64 - 1, 1.5, float("nan"), float("inf"), -1e308),
    *("", "x" * 600, "\x00", "prompt", b"", b"\xff" * 40, bytes(4 * 131_073)),
    *([], [0], [[0, 0]] * 5000, [-1], [2**40] * 5, ["user", 0, 1], {}, {"tenant": 1}),
    *("batch/2", "sequence/1", "sequence/1.9", "00000000"),
]

HEADERS = [
    *(b"", b"\xff\xfe", b"x" * 5000, b"application/json", b"application/msgpack", b"text/x"),
    *(b"batch/1", b"batch/2", b"sequence/1", b"runtime/1", b"runtime-batch/1", b"engine-event/1"),
    CANARY.encode(),
]

BATCH = msgspec.msgpack.decode(pack(SEQUENCES, RING), type=SequenceBatch)
INDEX: dict[str, Any] = msgspec.msgpack.decode(BATCH.index)
FRAMES = RING.open(
    RING.key_id, Sealed(BATCH.salt, BATCH.nonce, BATCH.sealed), ASSOCIATED + BATCH.index
)

_Random = random.Random


def damaged(random_: _Random, data: bytes) -> bytes:
    """Return the bytes with one to four places flipped, cut, added or repeated."""
    bent = bytearray(data)
    for _ in range(random_.randint(1, 4)):
        at = random_.randrange(len(bent) + 1)
        action = random_.randrange(6)
        if action == 0:
            del bent[at:]
        elif action == 1:
            bent[at : at + 1] = random_.randbytes(1)
        elif action == 2:
            bent[at:at] = random_.randbytes(random_.randrange(8))
        elif action == 3:
            del bent[at : at + random_.randrange(30)]
        elif action == 4:
            bent[at:at] = bent[at : at + random_.randrange(200)]
        elif at < len(bent):
            bent[at] ^= 1 << random_.randrange(8)
    return bytes(bent)


def swapped(random_: _Random, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with one to three of them odd, and one gone now and then."""
    odd = dict(fields)
    names = [*fields, "schema", "key_id", "token_hashes"]
    for _ in range(random_.randint(1, 3)):
        odd[random_.choice(names)] = random_.choice(ODD)
    if random_.random() < 0.2:
        del odd[random_.choice(list(odd))]
    return odd


def sealed(index: bytes, data: bytes) -> bytes:
    """Return a batch that is sealed properly, whatever stands in it."""
    made = RING.seal(RING.key_id, data, ASSOCIATED + index)
    batch = {"index": index, "salt": made.salt, "nonce": made.nonce, "sealed": made.data}
    return msgspec.msgpack.encode(batch)


def bent_record(random_: _Random) -> tuple[int, bytes]:
    """Return a sealed batch in which one record's metadata are odd, and which."""
    at = random_.randrange(len(SEQUENCES))
    records = list(INDEX["records"])
    records[at] = swapped(random_, records[at])
    return at, sealed(msgspec.msgpack.encode(INDEX | {"records": records}), FRAMES)


def _bent_index(random_: _Random) -> bytes:
    return sealed(msgspec.msgpack.encode(swapped(random_, INDEX)), FRAMES)


def _damaged_index(random_: _Random) -> bytes:
    return sealed(damaged(random_, BATCH.index), FRAMES)


def _damaged_frames(random_: _Random) -> bytes:
    if random_.random() < 0.5:
        return sealed(BATCH.index, damaged(random_, FRAMES))
    bent = bytearray(FRAMES)
    bent[random_.randrange(12)] ^= 1 << random_.randrange(8)  # the header of the first frame
    return sealed(BATCH.index, bytes(bent))


def _moved(random_: _Random) -> bytes:
    name = random_.choice(["starts", "counts", "frames"])
    places = list(INDEX[name])
    places[random_.randrange(len(places))] = random_.choice([*ODD, 1, 7, [3, 5], [2**21, 1]])
    return sealed(msgspec.msgpack.encode(INDEX | {name: places}), FRAMES)


def _bent_seal(random_: _Random) -> bytes:
    return msgspec.msgpack.encode(swapped(random_, msgspec.to_builtins(BATCH)))


def _damaged_batch(random_: _Random) -> bytes:
    return damaged(random_, encode(BATCH))


def _clear(random_: _Random) -> bytes:
    kind = random_.choice([SAMPLE, EVENT, ROW])
    encoding = random_.choice(list(Encoding))
    form = random_.randrange(4)
    if form == 0:
        return damaged(random_, random_.choice(CLEAR_BATCHES))
    if form == 1:
        return damaged(random_, encode(kind, encoding))
    fields = swapped(random_, msgspec.to_builtins(kind))
    if form == 2:
        batch = {"kv_pool": "p", "records": [fields, msgspec.to_builtins(kind)]}
        return msgspec.msgpack.encode(batch)
    return msgspec.msgpack.encode(fields)


def _noise(random_: _Random) -> bytes:
    return random_.choice(
        (
            random_.randbytes(random_.randrange(200)),
            b"\x91" * random_.randrange(3000),
            b"\xdd\xff\xff\xff\xff" + random_.randbytes(20),
            b"\x81\xa5index\xc6\xff\xff\xff\xff",
            b'{"x":' + b"[" * random_.randrange(3000),
            b"\x81\xa1x" + b"\x91" * random_.randrange(3000),
            CANARY.encode() * random_.randrange(1, 50),
        )
    )


KINDS: Final[tuple[type[Record], ...]] = (
    SequenceRecord,
    SequenceRecord,
    RuntimeSample,
    EngineEvent,
    RequestRow,
)

SEALED: Final[tuple[Callable[[_Random], bytes], ...]] = (
    _damaged_batch,
    _bent_seal,
    _bent_index,
    _damaged_index,
    _damaged_frames,
    _moved,
    lambda random_: bent_record(random_)[1],
    _noise,
)
"""What is sent where sequences belong."""


def message(random_: _Random) -> tuple[type[Record], BrokerRecord]:
    """Return a hostile message and the kind of record that its topic is for."""
    kind = random_.choice(KINDS)
    return kind, message_for(kind, random_)


def message_for(kind: type[Record], random_: _Random) -> BrokerRecord:
    """Return a hostile message for the topic of a kind; headers fit, lack, lie or are noise."""
    fits = (kind is SequenceRecord) != (random_.random() < 0.05)
    value = random_.choice(SEALED)(random_) if fits else _clear(random_)
    headers: Headers = tuple(
        (name, random_.choice(HEADERS))
        for name in ("content-type", "bleedwatch-schema", "bleedwatch-event-ms")
        if random_.random() < 0.15
    )
    return BrokerRecord("topic", 0, 1, b"p", value, headers, 0)
