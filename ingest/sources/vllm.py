"""Reads vLLM's request log: pairs prompt and output lines, joins deltas, counts losses.

vLLM's log is the weakest source there is (docs/engine-logs.md): this reader marks as incomplete
whatever it cannot prove complete.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator

from detector.errors import RecordError
from ingest.coverage import Coverage
from ingest.sources.base import RawRequest
from ingest.sources.bodies import Bodies
from ingest.sources.pending import (
    MAX_UNFINISHED,
    MAX_UNFINISHED_IDS,
    MAX_UNFINISHED_MS,
    PendingTable,
)
from ingest.sources.vllm_families import Families
from ingest.sources.vllm_lines import LineReader, LogLine
from ingest.sources.vllm_messages import (
    Aborted,
    Body,
    Message,
    Output,
    PromptSeen,
    Received,
    read_message,
)
from ingest.sources.vllm_requests import CutDetector, LogHabits, OpenRequest, finished
from ingest.sources.vllm_year import FirstYear

ABORT_LINGER_MS = 5_000
"""Log time after "aborted" in which a last delta may still come."""

BODY_LIFE_MS = 60_000
"""A body line comes just before its request; an older one belongs to an earlier request."""

LONGEST_RESPONSE_MS = 600_000
"""A namesake that began earlier than this is not running any more."""

MAX_CONTINUED = 64
MAX_BODY_CHARS = 16 * 1024 * 1024

FIRST_WITH_COMPLETION_OUTPUT = (0, 33)
"""Measured: 0.32 logs no output of /v1/completions; 0.33 does."""

_VERSION = re.compile(
    r"(?:Initializing an? (?:V\d )?LLM engine \(v|vLLM (?:API )?server version |[\s▀▄█]*version )"
    r"(\d{1,3})\.(\d{1,4})"
)
_SUFFIX = re.compile(r"-[0-9a-f]{8}$")


class VllmLog:
    """The requests of one vLLM log.

    `lines` are (line number, raw bytes without newline); `year` is the year of the first text
    line, or tells it by that line's day (vLLM writes none; without it times start in 1972),
    `version` what an earlier part of the log has said. Iterate once. Requests come roughly in the
    order they ended; what never ended comes when `max_unfinished` or `max_unfinished_ms` of log
    time push it out, or at the end of the input. Bad records are counted, never raised.
    """

    def __init__(
        self,
        lines: Iterable[tuple[int, bytes]],
        *,
        engine: str,
        coverage: Coverage,
        year: int | FirstYear | None = None,
        max_unfinished: int = MAX_UNFINISHED,
        max_unfinished_ms: int = MAX_UNFINISHED_MS,
        max_unfinished_ids: int = MAX_UNFINISHED_IDS,
        version: tuple[int, int] | None = None,
    ) -> None:
        self._lines = lines
        self._engine = engine
        self._coverage = coverage
        coverage.kind = coverage.kind or "vllm"
        self._reader = LineReader(year)
        self._open: PendingTable[OpenRequest] = PendingTable(
            max_count=max_unfinished, max_ms=max_unfinished_ms, max_ids=max_unfinished_ids
        )
        self._closing: PendingTable[OpenRequest] = PendingTable(max_ms=ABORT_LINGER_MS)
        self._families = Families()
        self._bodies: Bodies[Body] = Bodies(BODY_LIFE_MS)
        self._continued: OrderedDict[bytes, tuple[int, list[str]]] = OrderedDict()
        self._habits = LogHabits()
        self._caps = CutDetector()
        self.version: tuple[int, int] | None = None
        """The engine's version, once it has said so."""
        if version is not None:
            self._take_version(version)

    def __iter__(self) -> Iterator[RawRequest]:
        """Yield requests; see the class for the order."""
        for number, raw in self._lines:
            yield from self.take(number, raw)
        yield from self.end()

    def take(self, number: int, raw: bytes) -> Iterable[RawRequest]:
        """Read one line; return the requests that it ends or pushes out."""
        self._coverage.lines += 1
        return self._read(number, raw) if self._wanted(raw) else ()

    def end(self, *, is_read_again: bool = False) -> Iterator[RawRequest]:
        """Yield what never ended; a message that broke off is counted, unless it is read again."""
        for first, _ in () if is_read_again else self._continued.values():
            self._coverage.broken("truncated_message", first)
        for table in (self._closing, self._open):
            for request in table.drain():
                yield from self._finish(request)

    def oldest_line(self) -> int | None:
        """Return the first line of the oldest request, body or broken message that waits."""
        lines = [table.oldest_line() for table in (self._closing, self._open, self._bodies)]
        lines += [first for first, _ in self._continued.values()]
        return min((line for line in lines if line is not None), default=None)

    def _read(self, number: int, raw: bytes) -> Iterator[RawRequest]:
        try:
            yield from self._line(number, raw)
        except RecordError as error:
            self._coverage.broken(error.reason, number)

    def _wanted(self, raw: bytes) -> bool:
        return (
            b"equest" in raw
            or b"Generated response " in raw
            or b"ersion " in raw
            or b"engine (v" in raw
            or raw.endswith(b"\r")
            or bool(self._continued)
        )

    def _line(self, number: int, raw: bytes) -> Iterator[RawRequest]:
        line = self._reader.read(raw)
        if line is None:
            return
        line.first_line = line.last_line = number
        message = self._joined(line)
        if message is None:
            return
        event = read_message(line.place, message)
        if event is None:
            self._note_version(message)
            return
        if line.first_line != line.last_line and not isinstance(event, Body):
            raise RecordError("truncated_message", "a body whose first lines are missing")
        self._bodies.pass_time(line.start_ms)
        yield from self._overdue(line.start_ms)
        yield from self._event(event, line)

    def _joined(self, line: LogLine) -> str | None:
        """Join lines that one message was broken into; None while it goes on.

        A line that repeats the exact prefix of an unfinished message belongs to that message, so
        user text with newlines cannot pass for a record of its own. Of our messages only bodies
        have newlines: the others hold text in quotes.
        """
        known = self._continued.pop(line.head, None)
        if known is None and not line.continues:
            return line.message
        line.first_line, parts = known if known is not None else (line.first_line, [])
        if sum(map(len, parts)) < MAX_BODY_CHARS:
            parts.append(line.message)
        if not line.continues:
            return "\n".join(parts)
        self._continued[line.head] = (line.first_line, parts)
        if len(self._continued) > MAX_CONTINUED:
            _, (first, _) = self._continued.popitem(last=False)
            self._coverage.broken("truncated_message", first)
        return None

    def _note_version(self, message: str) -> None:
        found = _VERSION.match(message)
        if found is not None:
            self._take_version((int(found[1]), int(found[2])))

    def _take_version(self, version: tuple[int, int]) -> None:
        self.version = version
        self._habits.completions_never = version < FIRST_WITH_COMPLETION_OUTPUT

    def _overdue(self, now_ms: int) -> Iterator[RawRequest]:
        for table in (self._closing, self._open):
            for request in table.overdue(now_ms):
                yield from self._finish(request)

    def _event(self, event: Message, line: LogLine) -> Iterator[RawRequest]:
        match event:
            case PromptSeen():
                request, before = self._opened(event.request_id, line, event)
                request.prompt = event
                self._open.grew(len(event.ids or ()))
                yield from before
            case Received():
                yield from self._received(event, line)
            case Output():
                yield from self._output(event, line)
            case Body():
                self._remember(event, line)
            case Aborted():
                self._aborted(event, line)

    def _received(self, event: Received, line: LogLine) -> Iterator[RawRequest]:
        request, before = self._opened(event.request_id, line, event)
        request.received = event
        if event.prompt is not None:
            request.prompt = event.prompt
            self._open.grew(len(event.prompt.ids or ()))
        yield from before
        silent = self._habits.completions_never and event.request_id.startswith("cmpl-")
        if silent or not event.generates:
            self._forget(request)
            yield from self._finish(request)

    def _opened(
        self, request_id: str, line: LogLine, event: PromptSeen | Received
    ) -> tuple[OpenRequest, list[RawRequest]]:
        """Find the open request that this line belongs to, or begin one and end its namesake."""
        known = self._open.get(request_id)
        if known is not None and not known.has_output():
            taken = known.prompt if isinstance(event, PromptSeen) else known.received
            if taken is None:
                known.last_line = line.last_line
                return known, []
        before: list[RawRequest] = []
        mixed = False
        for table in (self._closing, self._open):
            if (namesake := table.pop(request_id)) is not None:
                recent = line.start_ms - namesake.opened_ms <= LONGEST_RESPONSE_MS
                mixed = mixed or (recent and not namesake.aborted)
                before += self._finish(namesake)
        request = self._begin(request_id, line)
        request.mixed = mixed
        request.parent_id = self._families.add(request_id)
        self._add_body(request, line.start_ms)
        return request, before

    def _begin(self, request_id: str, line: LogLine) -> OpenRequest:
        request = OpenRequest(
            request_id=request_id,
            opened_ms=line.start_ms,
            since_ms=line.start_ms,
            first_line=line.first_line,
            last_line=line.last_line,
        )
        self._open.put(request_id, request)
        return request

    def _output(self, event: Output, line: LogLine) -> Iterator[RawRequest]:
        self._habits.learn(event)
        request = self._find(event.request_id)
        if request is None and event.ids is None:
            self._coverage.ignored("no_request_line")
            return
        if request is None:
            request = self._begin(event.request_id, line)
        if event.request_id != request.request_id and event.mode != "whole":
            request.mixed = request.mixed or self._families.size(event.request_id) > 1
        request.add(event, line.end_ms, self._caps)
        request.last_line = line.last_line
        self._open.grew(len(event.ids or ()))
        if request.ended:
            self._forget(request)
            yield from self._finish(request)

    def _find(self, request_id: str) -> OpenRequest | None:
        found = self._open.get(request_id) or self._closing.get(request_id)
        if found is None and (child := self._families.first_child(request_id)) is not None:
            found = self._open.get(child) or self._closing.get(child)
        return found

    def _aborted(self, event: Aborted, line: LogLine) -> None:
        for name in event.request_ids:
            request = self._find(name) or self._find(_SUFFIX.sub("", name))
            if request is None:
                continue
            request.aborted = True
            request.last_ms, request.last_line = line.end_ms, line.last_line
            if self._open.pop(request.request_id) is not None:
                request.since_ms = line.end_ms
                self._closing.put(request.request_id, request)

    def _remember(self, body: Body, line: LogLine) -> None:
        if body.cut_at is not None:
            self._caps.body_cut(body.cut_at)
            return
        self._bodies.put(body.request_id, body, line=line.first_line, now_ms=line.start_ms)

    def _add_body(self, request: OpenRequest, now_ms: int) -> None:
        """Find the body line of a request: its id is the engine id without prefix and index.

        Chats have no index: what looks like one is the client's.
        """
        bare = request.request_id.partition("-")[2]
        has_index = not request.request_id.startswith("chatcmpl-")
        call = [bare.rpartition("-")[0]] if has_index else []
        for name in (bare, *call, request.request_id):
            noted = self._bodies.claim(name)
            if noted is not None and 0 <= now_ms - noted.logged_ms <= BODY_LIFE_MS:
                request.body = noted.body
                request.first_line = min(request.first_line, noted.line)
                return

    def _forget(self, request: OpenRequest) -> None:
        self._open.pop(request.request_id)
        self._closing.pop(request.request_id)

    def _finish(self, request: OpenRequest) -> Iterator[RawRequest]:
        self._families.remove(request.request_id)
        for raw in finished(request, engine=self._engine, habits=self._habits, caps=self._caps):
            self._coverage.read(raw)
            yield raw
