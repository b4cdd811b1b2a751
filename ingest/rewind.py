"""From which offsets a partition is read again, so that its window is whole before it goes on.

Event time decides, never the clock of the machine: a worker that was down for an hour reads again
what its window held when it stopped. Time stamps of records are no earlier than the event times in
them, so all that a window needs lies at or behind the first offset sent at its event time.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ingest.broker import BrokerRecord, Reader, TopicPartition

READ_S: Final = 10.0
"""How long one record is waited for: several times what a busy broker needs."""

POLL_S: Final = 0.5


def reachable(reader: Reader, committed: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return the offsets that their topics still reach; raises BrokerError.

    One beyond the end is of a topic that was there before, or of records that a broker has lost:
    what comes below it now was never finished.
    """
    return {at: offset for at, offset in committed.items() if offset <= reader.end(at)}


def rewind(
    reader: Reader,
    partition: int,
    *,
    topics: Sequence[str],
    committed: Mapping[TopicPartition, int],
    warm_from_ms: Callable[[BrokerRecord], int],
) -> dict[TopicPartition, int]:
    """Return for each input the offset from which it is to be read, never above the committed one.

    The first of `topics` leads: its last finished record says when the window begins. Another input
    with unfinished records pulls that back to the first of them. Without a finished record of the
    leading input everything that is kept is read. Raises BrokerError.
    """
    inputs = [TopicPartition(topic, partition) for topic in topics]
    first = {at: reader.beginning(at) for at in inputs}
    lead = inputs[0]
    newest = _last_finished(reader, lead, first[lead], committed.get(lead, 0))
    if newest is None:
        return first
    anchors = [newest]
    for at in inputs[1:]:
        offset = max(committed.get(at, 0), first[at])
        if offset < reader.end(at):
            anchors += [record for record in [_read(reader, at, offset)] if record]
    since = min(warm_from_ms(record) for record in anchors)
    return {at: _position(reader, at, since, first[at], committed.get(at)) for at in inputs}


def _last_finished(
    reader: Reader, at: TopicPartition, first: int, committed: int
) -> BrokerRecord | None:
    """Return the last record below the committed offset, None if none is kept or it is no record.

    The place right below can be the mark of a transaction; then all that is kept is read again.
    """
    if committed <= first:
        return None
    record = _read(reader, at, committed - 1)
    return record if record is not None and record.offset < committed else None


def _position(
    reader: Reader, at: TopicPartition, since_ms: int, first: int, committed: int | None
) -> int:
    """Return where one input starts; one that was never committed starts at its beginning."""
    if committed is None:
        return first
    sent = reader.offset_at(at, since_ms)
    return max(first, committed if sent is None else min(sent, committed))


def _read(reader: Reader, at: TopicPartition, offset: int) -> BrokerRecord | None:
    """Return the first record at or after an offset, None if only marks of transactions follow."""
    reader.assign({at: offset})
    deadline = time.monotonic() + READ_S
    while True:
        for record in reader.poll(POLL_S):
            if record.offset >= offset:
                return record
        if reader.end(at) <= offset or time.monotonic() > deadline:
            return None
