"""Collects records into batches: by pool, up to a size or for a moment, whichever is first.

Pure: time is given, nothing is sent. What comes out are messages for a publisher.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from detector.errors import RecordError
from ingest.broker import Message
from ingest.compression import TOKEN_BYTES
from ingest.envelope import Entry
from ingest.packing_settings import OVERHEAD_BYTES, PackingSettings
from ingest.partitioning import message_bytes
from ingest.record_headers import EventTimes, headers
from ingest.schema import Encoding
from ingest.schema_batches import MAX_BATCH_RECORDS, MAX_BATCH_TOKENS

MAX_HELD_BYTES: Final = 64 * 1024 * 1024
"""Held in all pools together at most; beyond, the batch that has waited longest goes at once."""

_R_contra = TypeVar("_R_contra", contravariant=True)
_R = TypeVar("_R")


class Form(Protocol[_R_contra]):
    """How records of one kind are written; `ingest/packing_forms.py` has those that exist."""

    @property
    def schema(self) -> str:
        """Schema header of a batch."""
        ...

    def entry(self, record: _R_contra) -> Entry:
        """Return the record as it will be packed; raises RecordError."""
        ...

    def times(self, record: _R_contra) -> EventTimes:
        """Return start and end of the record in event time."""
        ...

    def pack(self, entries: Sequence[Entry]) -> bytes:
        """Return the batch; raises RecordError."""
        ...


class _Item(NamedTuple):
    entry: Entry
    times: EventTimes
    trace_parent: str | None


class _Batch:
    """A batch that is still being filled."""

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.items: list[_Item] = []
        self.size = 0
        self.tokens = 0

    def add(self, item: _Item) -> None:
        self.items.append(item)
        self.size += item.entry.size
        self.tokens += len(item.entry.hashes) // TOKEN_BYTES


class Packer(Generic[_R]):
    """Packs records for one topic. Times are seconds of a clock that never goes back.

    Records of one pool keep their order. A record that cannot be packed is counted in `refused` by
    reason and costs no other.
    """

    def __init__(self, topic: str, form: Form[_R], settings: PackingSettings) -> None:
        self._topic = topic
        self._form = form
        self._settings = settings
        self._open: dict[tuple[str, str], _Batch] = {}
        self._held = 0
        self.refused: Counter[str] = Counter()

    @property
    def next_due_s(self) -> float | None:
        """When `due` will next have something to send; None while nothing is held."""
        first = next(iter(self._open.values()), None)
        return None if first is None else first.since_s + self._settings.linger_ms / 1000

    def add(self, record: _R, now_s: float, trace_parent: str | None = None) -> list[Message]:
        """Take a record; return the batches that it filled. `trace_parent` is that of its request.

        A batch whose records belong to one trace says which.
        """
        try:
            item = self._item(record, trace_parent)
        except RecordError as error:
            self.refused[error.reason] += 1
            return []
        group = (item.entry.kv_pool, item.entry.key_id)
        sent = self._close(group) if self._is_full(group, item.entry) else []
        batch = self._open.setdefault(group, _Batch(now_s))
        batch.add(item)
        self._held += item.entry.size
        if batch.size >= self._settings.target_bytes:
            sent += self._close(group)
        while self._held > MAX_HELD_BYTES:
            sent += self._close(next(iter(self._open)))
        return sent

    def due(self, now_s: float) -> list[Message]:
        """Return the batches whose time has come."""
        sent: list[Message] = []
        while (next_s := self.next_due_s) is not None and next_s <= now_s:
            sent += self._close(next(iter(self._open)))
        return sent

    def drain(self) -> list[Message]:
        """Return everything that is held."""
        return [message for group in list(self._open) for message in self._close(group)]

    def _item(self, record: _R, trace_parent: str | None) -> _Item:
        entry = self._form.entry(record)
        if entry.size > self._settings.message_limit_bytes - OVERHEAD_BYTES:
            raise RecordError("too_large", "a record is larger than a message may be")
        return _Item(entry, self._form.times(record), trace_parent)

    def _is_full(self, group: tuple[str, str], entry: Entry) -> bool:
        """Tell whether a record would make an open batch larger than it should be."""
        batch = self._open.get(group)
        return batch is not None and (
            batch.size + entry.size > self._settings.target_bytes
            or batch.tokens + len(entry.hashes) // TOKEN_BYTES > MAX_BATCH_TOKENS
            or len(batch.items) == MAX_BATCH_RECORDS
        )

    def _close(self, group: tuple[str, str]) -> list[Message]:
        batch = self._open.pop(group)
        self._held -= batch.size
        return list(self._messages(batch.items))

    def _messages(self, items: Sequence[_Item]) -> Iterator[Message]:
        """Yield one message, or the halves where the whole is above the limit after all."""
        try:
            message = self._message(items)
        except RecordError as error:
            self.refused[error.reason] += len(items)
            return
        if message_bytes(message) <= self._settings.message_limit_bytes:
            yield message
        elif len(items) == 1:
            self.refused["too_large"] += 1
        else:
            middle = len(items) // 2
            yield from self._messages(items[:middle])
            yield from self._messages(items[middle:])

    def _message(self, items: Sequence[_Item]) -> Message:
        times = EventTimes(
            min(item.times.oldest for item in items), max(item.times.newest for item in items)
        )
        traces = {item.trace_parent for item in items}
        return Message(
            self._topic,
            self._form.pack([item.entry for item in items]),
            key=items[0].entry.kv_pool.encode(),
            headers=headers(
                Encoding.MSGPACK,
                self._form.schema,
                times,
                traces.pop() if len(traces) == 1 else None,
            ),
        )
