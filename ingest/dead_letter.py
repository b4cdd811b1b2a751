"""What could not be read: the reason and the place of a message or record, never its content.

Whoever investigates finds the message itself where it came from, at the offset that is named, under
the rights of that topic. So nothing of a tenant gets into a second topic.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from detector.errors import RecordError
from ingest.broker import BrokerRecord, Message
from ingest.envelope import Unpacked
from ingest.limits import MAX_COUNT
from ingest.record_headers import SCHEMA, EventTimes, event_times, header, headers
from ingest.schema import MAJOR, Encoding, encode
from ingest.schema_records import Count, Name, Record, Text, TimeMs, Word

REASONS: Final = frozenset(
    {
        *("empty", "content_type", "schema_version", "undecodable", "too_deep", "too_large"),
        *("wrong_type", "number_range", "time_order", "part_range", "prompt_length", "span_range"),
        *("token_bytes", "token_count", "not_sealed", "two_pools", "two_keys"),
        *("unknown_key", "seal_broken", "frame_range", "frame_broken", "offset_range"),
        "ahead_of_time",
    }
)
"""Every reason a message or record of an input topic is refused for; another becomes `other`."""

OTHER: Final = "other"

_LABEL: Final = re.compile(r"[a-z-]{1,32}/\d{1,4}(?:\.\d{1,4})?")


class DeadLetter(Record):
    """One message, or those records of it that share a reason, that could not be read.

    `source_schema` is the schema header, where it has the form of one. `size_bytes` is the size of
    the message's value, `records_lost` None when it does not say how many records it held.
    """

    kind_name: ClassVar[str] = "dead-letter"
    reason: Word
    source_topic: Name
    source_partition: Count
    source_offset: Annotated[int, Meta(ge=0, le=MAX_COUNT)]
    at_ms: TimeMs
    size_bytes: Count
    source_schema: Text | None = None
    records_lost: Count | None = None


def dead_letters(
    source: BrokerRecord, unpacked: Unpacked[Record], *, topic: str, at_ms: int
) -> list[Message]:
    """Return a message for each reason in what was refused of `source`, in a fixed order.

    `at_ms` is when it was refused, by the wall clock; it goes nowhere but into the record.
    """
    letters = _letters(source, unpacked, at_ms)
    return [_message(letter, source, topic) for letter in letters]


def reason_of(error: RecordError) -> str:
    """Return the reason as a word of the fixed vocabulary, fit for a metric's label."""
    return error.reason if error.reason in REASONS else OTHER


def _letters(source: BrokerRecord, unpacked: Unpacked[Record], at_ms: int) -> Iterator[DeadLetter]:
    schema = header(source.headers, SCHEMA)
    counts = Counter(map(reason_of, unpacked.rejected))
    for reason, count in sorted(counts.items()):
        yield DeadLetter(
            schema=f"{DeadLetter.kind_name}/{MAJOR}",
            reason=reason,
            source_topic=source.topic,
            source_partition=source.partition,
            source_offset=source.offset,
            at_ms=at_ms,
            size_bytes=len(source.value or b""),
            source_schema=schema if schema and _LABEL.fullmatch(schema) else None,
            records_lost=count if unpacked.lost == len(unpacked.rejected) else unpacked.lost,
        )


def _message(letter: DeadLetter, source: BrokerRecord, topic: str) -> Message:
    """The key keeps the letters of one partition in their order."""
    times = event_times(source.headers) or EventTimes(letter.at_ms, letter.at_ms)
    return Message(
        topic,
        encode(letter),
        key=f"{source.topic}/{source.partition}".encode(),
        headers=headers(Encoding.MSGPACK, letter.schema, times),
    )
