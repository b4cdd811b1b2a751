"""Finished requests on their way from the proxy to the loop that hashes and sends: bounded."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from detector.sketch.token_table import TokenTable
from ingest.coverage import Coverage
from ingest.door import Door
from ingest.schema_records import RequestRow, SequenceRecord
from ingest.schema_sequence import to_record
from ingest.sources.base import RawRequest
from ingest.tap.exchange import Exchange

_log = logging.getLogger(__name__)

MakeDoor = Callable[[TokenTable, Coverage], Door]

ENTRY_BYTES: Final = 2_048
"""What a finished request holds besides its ids: names, numbers and objects."""


class _Ended(NamedTuple):
    exchange: Exchange
    size: int
    ended_at_ms: int
    status: int
    is_cut: bool


class Finished:
    """The proxy puts in and never waits; the loop asks `feed`, which hashes and never raises.

    `table` gives the token table of the moment, `holds` tells whether the loop can take no more.
    """

    def __init__(
        self,
        *,
        table: Callable[[float], TokenTable],
        door: MakeDoor,
        kv_pool: str | None = None,
        most_bytes: int,
        holds: Callable[[], bool],
    ) -> None:
        self.coverage = Coverage(kind="tap")
        self.kept = 0
        """Requests whose ids went on to be sent."""
        self._table = table
        self._make_door = door
        self._door: Door | None = None
        self._hashed_with: TokenTable | None = None
        self._kv_pool = kv_pool
        self._most_bytes = most_bytes
        self._holds = holds
        self._lock = threading.Lock()
        self._waiting: deque[_Ended] = deque()
        self._bytes = 0

    @property
    def waiting_bytes(self) -> int:
        """What waits now."""
        return self._bytes

    def put(self, exchange: Exchange, *, ended_at_ms: int, status: int, is_cut: bool) -> None:
        """Take a request that has ended; it is dropped, and counted, if too much waits."""
        size = exchange.size + ENTRY_BYTES
        with self._lock:
            has_room = self._bytes + size <= self._most_bytes
            if has_room:
                self._waiting.append(_Ended(exchange, size, ended_at_ms, status, is_cut))
                self._bytes += size
        if not has_room:
            exchange.drop("waiting")

    def feed(self, now_s: float) -> Iterator[SequenceRecord | RequestRow]:
        """Yield the records of what waits, as long as the loop can take more."""
        while self._waiting and not self._holds():
            with self._lock:
                ended = self._waiting.popleft()
                self._bytes -= ended.size
            yield from self._records(ended, now_s)

    def _records(self, ended: _Ended, now_s: float) -> list[SequenceRecord | RequestRow]:
        try:
            door = self._current_door(now_s)
            made: list[SequenceRecord | RequestRow] = []
            for request in ended.exchange.requests(
                ended_at_ms=ended.ended_at_ms, status=ended.status, is_cut=ended.is_cut
            ):
                made += self._admitted(door, request, ended.exchange)
        except Exception as error:  # noqa: BLE001 - one request must not end the watch over all
            _log.warning("a finished request was lost to a fault (%s)", type(error).__name__)
            ended.exchange.missed("fault")
            return []
        finally:
            ended.exchange.close()
        self.kept += any(isinstance(one, SequenceRecord) for one in made)
        return made

    def _admitted(
        self, door: Door, request: RawRequest, exchange: Exchange
    ) -> list[SequenceRecord | RequestRow]:
        self.coverage.read(request)
        request.kv_pool = self._kv_pool
        if request.prompt_ids is None and request.response_ids is None:
            row = door.row(request)
            return [] if row is None else [row]
        made = [to_record(sequence) for sequence in door.sequences(request)]
        if not made:
            exchange.missed("refused")
        return list(made)

    def _current_door(self, now_s: float) -> Door:
        table = self._table(now_s)
        if self._door is None or table is not self._hashed_with:
            self._door, self._hashed_with = self._make_door(table, self.coverage), table
        return self._door
