"""Reads SGLang's request log into requests: JSON or text, levels 0 to 3, batches split.

Times: the engine's own epoch stamps where the log has them (--enable-metrics). Line times are
local without a zone and are taken as UTC; once a stamp shows the zone, line times are corrected.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from detector.errors import RecordError
from ingest.coverage import Coverage
from ingest.sources.base import Loss, RawRequest
from ingest.sources.bodies import Bodies
from ingest.sources.pending import (
    MAX_UNFINISHED,
    MAX_UNFINISHED_IDS,
    MAX_UNFINISHED_MS,
    PendingTable,
)
from ingest.sources.sglang_items import (
    HEALTH_CHECK,
    Item,
    items,
    judge_answer,
    meta_of,
    samples_in_parallel,
)
from ingest.sources.sglang_lines import AnswerFields, Record, left_request, read_record

BODY_LIFE_MS = 60_000
"""A body is logged just before its request; after this much log time none is waited for."""

ZONE_STEP_MS = 15 * 60 * 1000
"""All time zones are whole quarters of an hour from UTC."""

ZONE_SLACK_MS = 60_000
"""A finish line is written within a minute of the stamp it carries, or the two do not compare."""


@dataclass(slots=True)
class _Waiting:
    """A request that was received; `since_ms` is the log time of that line."""

    item: Item
    since_ms: int
    first_line: int
    last_line: int
    model: str | None = None

    @property
    def held_ids(self) -> int:
        """How many token ids are held."""
        return len(self.item.ids or ())


@dataclass(slots=True)
class _OpenAIBody:
    user: str | None = field(repr=False)
    model: str | None


class SglangLog:
    """The requests of one SGLang request log, from stdout or a log directory.

    `lines` are (line number, raw bytes without newline). `year` is not needed: SGLang writes it.
    Iterate once. Requests come in the order they finished. One whose client is said to have
    left comes at once, as its answer is never logged; what else never finished comes when
    `max_unfinished` or `max_unfinished_ms` of log time push it out, or at the end of the input.
    Bad records are counted, never raised.
    """

    def __init__(
        self,
        lines: Iterable[tuple[int, bytes]],
        *,
        engine: str,
        coverage: Coverage,
        year: int | None = None,  # noqa: ARG002 - one signature for all engine logs
        max_unfinished: int = MAX_UNFINISHED,
        max_unfinished_ms: int = MAX_UNFINISHED_MS,
        max_unfinished_ids: int = MAX_UNFINISHED_IDS,
    ) -> None:
        self._lines = lines
        self._engine = engine
        self._coverage = coverage
        coverage.kind = coverage.kind or "sglang"
        self._waiting: PendingTable[_Waiting] = PendingTable(
            max_count=max_unfinished, max_ms=max_unfinished_ms, max_ids=max_unfinished_ids
        )
        self._bodies: Bodies[_OpenAIBody] = Bodies(BODY_LIFE_MS)
        self._line = 0
        self._zone_ms = 0

    def __iter__(self) -> Iterator[RawRequest]:
        """Yield requests; see the class for the order."""
        for number, raw in self._lines:
            yield from self.take(number, raw)
        yield from self.end()

    def take(self, number: int, raw: bytes) -> Iterable[RawRequest]:
        """Read one line; yield the requests that it ends or pushes out."""
        self._coverage.lines += 1
        self._line = number
        try:
            record = read_record(raw)
            if record is not None:
                yield from self._record(record)
            elif (rid := left_request(raw)) and (waiting := self._waiting.pop(rid)) is not None:
                yield self._never_finished(waiting)
        except RecordError as error:
            self._coverage.broken(error.reason, number)

    def end(self, *, is_read_again: bool = False) -> Iterator[RawRequest]:  # noqa: ARG002 - nothing broken is held
        """Yield what never finished."""
        for waiting in self._waiting.drain():
            yield self._never_finished(waiting)

    def oldest_line(self) -> int | None:
        """Return the first line of the oldest request or body that waits for its end."""
        lines = (self._waiting.oldest_line(), self._bodies.oldest_line())
        return min((line for line in lines if line is not None), default=None)

    def _record(self, record: Record) -> Iterator[RawRequest]:
        self._bodies.pass_time(record.start_ms)
        for waiting in self._waiting.overdue(record.start_ms):
            yield self._never_finished(waiting)
        if record.event == "openai":
            self._remember(record)
            return
        if record.event == "received" and samples_in_parallel(record.fields):
            self._coverage.ignored("parallel_samples")
            return
        known = False
        for item in items(record):
            known = True
            if item.rid.startswith(HEALTH_CHECK):
                if record.event == "received":
                    self._coverage.ignored("health_check")
            elif record.event == "received":
                yield from self._received(item, record)
            else:
                yield self._finished(item, record)
        if not known:
            raise RecordError("id_unreadable", "a request record has no readable id")

    def _received(self, item: Item, record: Record) -> Iterator[RawRequest]:
        namesake = self._waiting.pop(item.rid)
        if namesake is not None:
            yield self._never_finished(namesake)
        waiting = self._begun(item, record.start_ms)
        self._waiting.put(item.rid, waiting)

    def _begun(self, item: Item, now_ms: int) -> _Waiting:
        waiting = _Waiting(item, now_ms, self._line, self._line)
        self._add_body(waiting)
        return waiting

    def _finished(self, item: Item, record: Record) -> RawRequest:
        meta = meta_of(record.answer)
        waiting = self._waiting.pop(item.rid)
        if waiting is None:
            waiting = self._begun(item, record.start_ms)
        elif item.ids is None and waiting.item.ids is not None:
            item.ids, item.loss = waiting.item.ids, waiting.item.loss
        identity = {**waiting.item.identity, **item.identity}
        answer = record.answer if record.answer is not None else AnswerFields()
        ids, loss = judge_answer(answer, _count(meta.get("completion_tokens")))
        ended_ms = _stamp_ms(meta.get("request_finished_ts"))
        self._learn_zone(record.end_ms, ended_ms)
        began_ms = _stamp_ms(meta.get("request_received_ts"))
        waiting.last_line = self._line
        raw = self._raw(waiting, item, identity)
        raw.started_at_ms = waiting.since_ms - self._zone_ms if began_ms is None else began_ms
        raw.ended_at_ms = record.end_ms - self._zone_ms if ended_ms is None else ended_ms
        raw.response_ids, raw.response_loss = ids, loss
        raw.reported_prompt_tokens = _count(meta.get("prompt_tokens"))
        raw.finish_reason, raw.status = _finish_of(meta.get("finish_reason"))
        self._coverage.read(raw)
        return raw

    def _never_finished(self, waiting: _Waiting) -> RawRequest:
        raw = self._raw(waiting, waiting.item, waiting.item.identity)
        raw.started_at_ms = waiting.since_ms - self._zone_ms
        raw.response_loss = Loss.NEVER_FINISHED
        self._coverage.read(raw)
        return raw

    def _raw(self, waiting: _Waiting, item: Item, identity: dict[str, str]) -> RawRequest:
        return RawRequest(
            request_id=item.rid,
            started_at_ms=0,
            prompt_ids=item.ids,
            prompt_loss=item.loss,
            engine=self._engine,
            model=waiting.model,
            parent_id=item.parent,
            session=identity.get("session_id"),
            end_user=identity.get("user"),
            identity=identity,
            first_line=waiting.first_line,
            last_line=waiting.last_line,
        )

    def _remember(self, record: Record) -> None:
        """Keep `user` and `model` of an OpenAI body under its rid or its x-request-id header."""
        fields = record.fields
        user = fields.user if isinstance(fields.user, str) and fields.user else None
        model = fields.model if isinstance(fields.model, str) and fields.model else None
        body = _OpenAIBody(user, model)
        rids = fields.rid if isinstance(fields.rid, list) else [fields.rid]
        keys = [f"rid {rid}" for rid in rids if isinstance(rid, str)]
        for key in keys or _header_key(record.headers):
            self._bodies.put(key, body, line=self._line, now_ms=record.start_ms)

    def _add_body(self, waiting: _Waiting) -> None:
        identity = waiting.item.identity
        keys = [f"rid {waiting.item.rid}"]
        if (request_header := identity.get("header:x-request-id")) is not None:
            keys.append(f"header {request_header}")
        for key in keys:
            noted = self._bodies.claim(key)
            if noted is not None:
                waiting.first_line = min(waiting.first_line, noted.line)
                waiting.model = noted.body.model
                if noted.body.user is not None:
                    identity.setdefault("user", noted.body.user)
                return

    def _learn_zone(self, line_ms: int, stamp_ms: int | None) -> None:
        if stamp_ms is None:
            return
        zone_ms = round((line_ms - stamp_ms) / ZONE_STEP_MS) * ZONE_STEP_MS
        if abs(line_ms - stamp_ms - zone_ms) <= ZONE_SLACK_MS:
            self._zone_ms = zone_ms


def _header_key(headers: Mapping[str, Any]) -> list[str]:
    for name, value in headers.items():
        if str(name).lower() == "x-request-id" and isinstance(value, str):
            return [f"header {value}"]
    return []


def _stamp_ms(value: object) -> int | None:
    """Read epoch seconds; None unless they are a plausible time (after 2001, before 2286)."""
    if isinstance(value, int | float) and 1e9 < value < 1e10:
        return int(value * 1000)
    return None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _finish_of(value: object) -> tuple[str | None, int | None]:
    """Read a finish reason: a dict with a type and, for aborts, a status code; or a plain word."""
    if isinstance(value, dict):
        kind, status = value.get("type"), value.get("status_code")
        return (kind if isinstance(kind, str) else None), _count(status)
    return (value if isinstance(value, str) else None), None
