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
from ingest.sources.pending import MAX_UNFINISHED, MAX_UNFINISHED_MS, PendingTable
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

ABORT_LINGER_MS = 5_000
"""Log time after "aborted" in which a last delta may still come."""

BODY_LIFE_MS = 60_000
"""A body line comes just before its request; an older one belongs to an earlier request."""

LONGEST_RESPONSE_MS = 600_000
"""A namesake that began earlier than this is not running any more."""

MAX_BODIES = 10_000
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
    line (vLLM writes none; without it times start in 1972). Iterate once. Requests come roughly in
    the order they ended; what never ended comes when `max_unfinished` or `max_unfinished_ms` of
    log time push it out, or at the end of the input. Bad records are counted, never raised.
    """

    def __init__(
        self,
        lines: Iterable[tuple[int, bytes]],
        *,
        engine: str,
        coverage: Coverage,
        year: int | None = None,
        max_unfinished: int = MAX_UNFINISHED,
        max_unfinished_ms: int = MAX_UNFINISHED_MS,
    ) -> None:
        self._lines = lines
        self._engine = engine
        self._coverage = coverage
        coverage.kind = coverage.kind or "vllm"
        self._reader = LineReader(year)
        self._open: PendingTable[OpenRequest] = PendingTable(
            max_count=max_unfinished, max_ms=max_unfinished_ms
        )
        self._closing: PendingTable[OpenRequest] = PendingTable(max_ms=ABORT_LINGER_MS)
        self._families = Families()
        self._bodies: OrderedDict[str, tuple[int, Body]] = OrderedDict()
        self._continued: OrderedDict[bytes, list[str]] = OrderedDict()
        self._habits = LogHabits()
        self._caps = CutDetector()

    def __iter__(self) -> Iterator[RawRequest]:
        """Yield requests; see the class for the order."""
        for number, raw in self._lines:
            self._coverage.lines += 1
            if not self._wanted(raw):
                continue
            try:
                yield from self._line(raw)
            except RecordError as error:
                self._coverage.broken(error.reason, number)
        for table in (self._closing, self._open):
            for request in table.drain():
                yield from self._finish(request)

    def _wanted(self, raw: bytes) -> bool:
        return (
            b"equest" in raw
            or b"Generated response " in raw
            or b"ersion " in raw
            or b"engine (v" in raw
            or raw.endswith(b"\r")
            or bool(self._continued)
        )

    def _line(self, raw: bytes) -> Iterator[RawRequest]:
        line = self._reader.read(raw)
        if line is None:
            return
        message = self._joined(line)
        if message is None:
            return
        event = read_message(line.place, message)
        if event is None:
            self._note_version(message)
            return
        yield from self._overdue(line.start_ms)
        yield from self._event(event, line)

    def _joined(self, line: LogLine) -> str | None:
        """Join lines that one message was broken into; None while it goes on.

        A line that repeats the exact prefix of an unfinished message belongs to that message, so
        user text with newlines cannot pass for a record of its own.
        """
        parts = self._continued.pop(line.head, None)
        if parts is None and not line.continues:
            return line.message
        parts = parts if parts is not None else []
        if sum(map(len, parts)) < MAX_BODY_CHARS:
            parts.append(line.message)
        if not line.continues:
            return "\n".join(parts)
        self._continued[line.head] = parts
        if len(self._continued) > MAX_CONTINUED:
            self._continued.popitem(last=False)
        return None

    def _note_version(self, message: str) -> None:
        found = _VERSION.match(message)
        if found is not None:
            version = (int(found[1]), int(found[2]))
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
                self._remember(event, line.start_ms)
            case Aborted():
                self._aborted(event, line.end_ms)

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
                return known, []
        before: list[RawRequest] = []
        mixed = False
        for table in (self._closing, self._open):
            if (namesake := table.pop(request_id)) is not None:
                recent = line.start_ms - namesake.opened_ms <= LONGEST_RESPONSE_MS
                mixed = mixed or (recent and not namesake.aborted)
                before += self._finish(namesake)
        request = self._begin(request_id, line.start_ms)
        request.mixed = mixed
        request.parent_id = self._families.add(request_id)
        return request, before

    def _begin(self, request_id: str, now_ms: int) -> OpenRequest:
        request = OpenRequest(request_id=request_id, opened_ms=now_ms, since_ms=now_ms)
        request.body = self._body_of(request_id, now_ms)
        self._open.put(request_id, request)
        return request

    def _output(self, event: Output, line: LogLine) -> Iterator[RawRequest]:
        self._habits.learn(event)
        request = self._find(event.request_id)
        if request is None and event.ids is None:
            self._coverage.ignored("no_request_line")
            return
        if request is None:
            request = self._begin(event.request_id, line.start_ms)
        if event.request_id != request.request_id and event.mode != "whole":
            request.mixed = request.mixed or self._families.size(event.request_id) > 1
        request.add(event, line.end_ms, self._caps)
        self._open.grew(len(event.ids or ()))
        if request.ended:
            self._forget(request)
            yield from self._finish(request)

    def _find(self, request_id: str) -> OpenRequest | None:
        found = self._open.get(request_id) or self._closing.get(request_id)
        if found is None and (child := self._families.first_child(request_id)) is not None:
            found = self._open.get(child) or self._closing.get(child)
        return found

    def _aborted(self, event: Aborted, ended_ms: int) -> None:
        for name in event.request_ids:
            request = self._find(name) or self._find(_SUFFIX.sub("", name))
            if request is None:
                continue
            request.aborted = True
            request.last_ms = ended_ms
            if self._open.pop(request.request_id) is not None:
                request.since_ms = ended_ms
                self._closing.put(request.request_id, request)

    def _remember(self, body: Body, now_ms: int) -> None:
        if body.cut_at is not None:
            self._caps.body_cut(body.cut_at)
            return
        self._bodies.pop(body.request_id, None)
        self._bodies[body.request_id] = (now_ms, body)
        if len(self._bodies) > MAX_BODIES:
            self._bodies.popitem(last=False)

    def _body_of(self, request_id: str, now_ms: int) -> Body | None:
        """Find the body line of a request: its id is the engine id without prefix and index."""
        bare = request_id.partition("-")[2]
        for name in (bare, bare.rpartition("-")[0], request_id):
            logged_ms, body = self._bodies.get(name, (0, None))
            if body is not None and 0 <= now_ms - logged_ms <= BODY_LIFE_MS:
                return body
        return None

    def _forget(self, request: OpenRequest) -> None:
        self._open.pop(request.request_id)
        self._closing.pop(request.request_id)

    def _finish(self, request: OpenRequest) -> Iterator[RawRequest]:
        self._families.remove(request.request_id)
        for raw in finished(request, engine=self._engine, habits=self._habits, caps=self._caps):
            self._coverage.read(raw)
            yield raw
