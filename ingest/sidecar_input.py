"""One log of a sidecar: from its lines to records under the current key, and how far it is done."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from detector.sketch.token_table import TokenTable
from ingest.coverage import Coverage
from ingest.door import Door
from ingest.schema_records import EngineEvent, RequestRow, SequenceRecord
from ingest.schema_sequence import to_record
from ingest.sources.base import RawRequest
from ingest.tail.checkpoint import LogMark
from ingest.tail.cri import RuntimeLines
from ingest.tail.had import HadRequests
from ingest.tail.source import LineSource
from ingest.tail.splitter import Line

Signals = Callable[[bytes], EngineEvent | None]
"""Makes an event of a log line, None of most. Given every line, so it must be quick to say no."""

MakeDoor = Callable[[TokenTable, Coverage], Door]

Sent = SequenceRecord | RequestRow | EngineEvent


class Reader(Protocol):
    """Reads the lines of a log into requests."""

    @property
    def is_known(self) -> bool:
        """True once the format is known."""
        ...

    @property
    def version(self) -> tuple[int, int] | None:
        """The engine's version if how its log is read depends on it."""
        ...

    def read(self, lines: Sequence[Line]) -> Iterable[RawRequest]:
        """Yield the requests that lines end."""
        ...

    def end(self, *, is_read_again: bool) -> Iterable[RawRequest]:
        """Yield what is unfinished; see `Source.end`."""
        ...

    def oldest_line(self) -> int | None:
        """Return the position of the first line that is still needed."""
        ...


class Reached(NamedTuple):
    """Up to where a log is done once everything that it has given is acknowledged."""

    position: int
    mark: LogMark | None


class SidecarInput:
    """Turns the lines of one log into records. Everything that is lost is counted in `coverage`.

    `door` gives the door for the table of the moment; tokens are hashed in here, and nothing else
    of them leaves. For one thread.
    """

    def __init__(
        self,
        log: LineSource,
        reader: Reader,
        *,
        coverage: Coverage,
        door: MakeDoor,
        kv_pool: str | None = None,
        signals: Signals | None = None,
        before: LogMark | None = None,
    ) -> None:
        self.log = log
        self.coverage = coverage
        self.repeats = 0
        """Requests that were read again behind a restart, and not sent again."""
        self.has_lines = False
        """True once a line has come."""
        self._reader = reader
        self._runtime = RuntimeLines(coverage=coverage)
        self._make_door = door
        self._door: Door | None = None
        self._table: TokenTable | None = None
        self._kv_pool = kv_pool
        self._reached = Reached(0 if before is None else before.position, before)
        self._signals = signals
        self._had = (
            HadRequests() if before is None else HadRequests(before.had, position=before.position)
        )

    @property
    def is_known(self) -> bool:
        """True once the format of the log is known."""
        return self._reader.is_known

    def poll(self, table: TokenTable, now_s: float) -> list[Sent]:
        """Return the records of what has come; hashed under `table`."""
        return list(self._records(self.log.poll(now_s), table))

    def finish(self, table: TokenTable) -> list[Sent]:
        """Return what is left: the last line, and requests that did not finish."""
        made = list(self._records(self.log.finish(), table))
        unfinished = self._reader.end(is_read_again=self.log.can_read_again)
        return made + [one for raw in unfinished for one in self._admitted(raw, table)]

    def reached(self) -> Reached:
        """Return up to where everything has been given away, and what a restart must know.

        While the file there cannot be told from others yet, what was returned before holds.
        """
        waiting = (self._reader.oldest_line(), self._runtime.oldest_line(), self.log.next_at)
        position = min(one for one in waiting if one is not None)
        mark = self.log.place(position)
        if mark is not None:
            had = self._had.across(position)
            log = LogMark(self.log.name, position, mark, had, self._reader.version)
            self._reached = Reached(position, log)
        elif not self.log.can_read_again:
            self._reached = Reached(position, None)
        return self._reached

    def release(self, position: int) -> None:
        """Hear that everything below a position is acknowledged and noted."""
        self._had.release(position)
        self.log.release(position)

    def _records(self, lines: Sequence[Line], table: TokenTable) -> Iterator[Sent]:
        whole = [line for one in lines if (line := self._runtime.take(one)) is not None]
        self.has_lines |= bool(whole)
        if self._signals is not None:
            for _, content in whole:
                event = self._signals(content)
                if event is not None:
                    yield event
        for raw in self._reader.read(whole):
            yield from self._admitted(raw, table)

    def _admitted(self, raw: RawRequest, table: TokenTable) -> Iterable[Sent]:
        if self._had.is_again(raw):
            self.repeats += 1
            return ()
        self._had.add(raw)
        if raw.kv_pool is None:
            raw.kv_pool = self._kv_pool
        door = self._door_of(table)
        if raw.prompt_ids is None and raw.response_ids is None:
            row = door.row(raw)
            return () if row is None else (row,)
        return [to_record(sequence) for sequence in door.sequences(raw)]

    def _door_of(self, table: TokenTable) -> Door:
        if self._door is None or table is not self._table:
            self._door, self._table = self._make_door(table, self.coverage), table
        return self._door
