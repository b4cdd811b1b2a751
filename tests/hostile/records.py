"""Hostile records for each input topic with the reasons they must be refused for, and good ones."""

import random
from collections.abc import Iterator
from typing import Final, NamedTuple

from detector.streaming.intake import Intake
from ingest.broker import BrokerRecord
from ingest.dead_letter import reason_of
from ingest.opening import open_records
from ingest.record_headers import CONTENT_TYPE, SCHEMA
from ingest.schema import encode
from ingest.schema_records import EngineEvent, EventKind, Record, RuntimeSample, SequenceRecord
from tests.fuzz.hostile import CANARY, message_for
from tests.unit.wire import RING

KINDS: Final[dict[str, type[Record]]] = {
    "sequences": SequenceRecord,
    "runtime": RuntimeSample,
    "engine-events": EngineEvent,
}
"""What each input topic is for."""

GOOD: Final = "good"
"""Tenant, engine and pools of records that nobody has touched begin so."""

MAX_BYTES: Final = 300_000
"""A large record now and then; every one of this size would fill the disk."""

AHEAD_MS: Final = 60_000

_ODD_HEADERS: Final[tuple[tuple[str, bytes | None], ...]] = (
    (SCHEMA, None),
    (CONTENT_TYPE, None),
    (CANARY, CANARY.encode()),
    ("", b""),
    ("é", b"\xff"),
    ("x" * 3000, b"y" * 3000),
)
"""What a message may have besides our own headers; a header without a value is not an empty one."""


class Hostile(NamedTuple):
    """One record as it is sent; `sent_ms` is the time its sender claims."""

    value: bytes | None
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    sent_ms: int


def hostile(topic: str, random_: random.Random, now_ms: int) -> Hostile:
    """Return a record that was a valid one once: bent, cut, padded, resealed, relabelled."""
    made = message_for(KINDS[topic], random_)
    value: bytes | None = made.value
    if random_.random() < 0.01:
        value = None
    elif random_.random() < 0.0005:
        value = (value or b"")[:MAX_BYTES] + random_.randbytes(random_.randrange(MAX_BYTES))
    given: tuple[tuple[str, bytes | None], ...] = made.headers
    if random_.random() < 0.1:
        given = (*given, random_.choice(_ODD_HEADERS))
    key = random_.choice(
        (b"" if value is None else None, b"p", CANARY.encode(), random_.randbytes(40))
    )
    ago_ms = random_.choice((0, 0, 0, 1, 3_600_000, 10 * 86_400_000, now_ms))
    return Hostile(value, key, given, now_ms - ago_ms)


def reasons(topic: str, sent: Hostile) -> frozenset[str]:
    """Return what the dead letters of a record must say, one for each reason; none if it is good.

    The same opening as in the worker, with another process around it: what is tried is that nothing
    is lost or mixed up on the way, whatever comes. tests/fuzz tries the opening itself.
    """
    given = tuple((name, value or b"") for name, value in sent.headers)
    record = BrokerRecord(topic, 0, 0, sent.key, sent.value, given, sent.sent_ms)
    intake = Intake(lambda: RING, AHEAD_MS)
    if topic == "runtime":
        refused = intake.not_ahead(open_records(RuntimeSample, record), record).rejected
    elif topic == "engine-events":
        refused = intake.not_ahead(open_records(EngineEvent, record), record).rejected
    else:
        refused = intake.open(record).rejected
    return frozenset(plain(reason_of(error)) for error in refused)


def plain(reason: str) -> str:
    """Return the reason, the same for nesting that is too deep and for what ends within it.

    How deep is too deep depends on how deep the caller is in functions of its own.
    """
    return "undecodable" if reason == "too_deep" else reason


def good_events(count: int, now_ms: int) -> Iterator[bytes]:
    """Yield good events: each must become the row of a rejected request."""
    for at in range(count):
        event = EngineEvent(
            kind=EventKind.REJECTED, engine=GOOD, kv_pool=GOOD, at_ms=now_ms + at, tenant=GOOD,
            request_id=f"{GOOD}-{at}",
        )  # fmt: skip
        yield encode(event)


def good_samples(count: int, now_ms: int) -> Iterator[bytes]:
    """Yield good samples: none may be refused."""
    for at in range(count):
        sample = RuntimeSample(
            engine=GOOD, kv_pool=GOOD, sampled_at_ms=now_ms + at, engine_kind="vllm"
        )
        yield encode(sample)
