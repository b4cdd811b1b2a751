"""One row for every request: joins its prompt and its response, and tells what never came.

Rows serve coverage and blast radius. Pure and bounded: event time alone decides when a request is
no longer waited for. A request is named by (tenant, request id, start). Of several rows for one, as
records that come twice or late make them, what is present counts and what is unseen does not.
"""

from typing import Final, NamedTuple

from detector.model import PART_OVERLAP, Kind
from ingest.schema_records import EngineEvent, EventKind, RequestRow, SequenceRecord

MAX_WAITING: Final = 100_000
"""Requests waited for at most, about 1.2 KB each (measured): what 100 engines with 1,000 slots each
run at a time. Beyond, the one that has waited longest gets its row as it is."""

PROMPT_UNSEEN: Final = "prompt_unseen"
RESPONSE_UNSEEN: Final = "response_unseen"
PARTS_MISSING: Final = "parts_missing"
GATEWAY_CACHE: Final = "gateway_cache_hit"
IDS_NOT_LOGGED: Final = "ids_not_logged"

FLAGS: Final = frozenset(
    {PROMPT_UNSEEN, RESPONSE_UNSEEN, PARTS_MISSING, GATEWAY_CACHE, IDS_NOT_LOGGED}
)
"""Every flag of a row."""

REJECTED_BY_ENGINE: Final = "engine"
"""`rejected_by` of a rejection that names no limit."""


class _Request(NamedTuple):
    tenant: str
    request_id: str
    started_at_ms: int


class _Side:
    """The parts of a prompt or of a response that have come, each counted once."""

    def __init__(self) -> None:
        self._tokens: dict[int, int] = {}
        self._parts = 1

    def add(self, record: SequenceRecord) -> None:
        self._tokens[record.part] = record.token_count
        self._parts = record.parts

    @property
    def seen(self) -> bool:
        return bool(self._tokens)

    @property
    def complete(self) -> bool:
        return len(self._tokens) == self._parts

    @property
    def tokens(self) -> int | None:
        """Length of the side; None while parts are missing."""
        if not self.complete:
            return None
        return sum(self._tokens.values()) - PART_OVERLAP * (self._parts - 1)


class _Waiting:
    """What has come of one request; of the records only their metadata."""

    def __init__(self, first: SequenceRecord) -> None:
        self.sides = {kind: _Side() for kind in Kind}
        self.row = RequestRow(
            tenant=first.tenant,
            request_id=first.request_id,
            kv_pool=first.kv_pool,
            engine=first.engine,
            model=first.model,
            started_at_ms=first.started_at_ms,
        )
        self.prompt_tokens: int | None = None
        self.gateway_cache_hit = False

    def add(self, record: SequenceRecord) -> None:
        self.sides[record.kind].add(record)
        self.gateway_cache_hit |= record.gateway_cache_hit
        self.prompt_tokens = _first(
            record.prompt_token_count, self.prompt_tokens, record.reported_prompt_tokens
        )
        self.row.status = _first(record.status, self.row.status)
        self.row.finish_reason = record.finish_reason or self.row.finish_reason
        if record.kind is Kind.RESPONSE:
            self.row.ended_at_ms = record.ended_at_ms

    def finished(self) -> RequestRow:
        """Return the row of all that has come."""
        prompt, response = self.sides[Kind.PROMPT], self.sides[Kind.RESPONSE]
        flags = {
            PROMPT_UNSEEN: not prompt.seen,
            RESPONSE_UNSEEN: not response.seen,
            PARTS_MISSING: any(side.seen and not side.complete for side in (prompt, response)),
            GATEWAY_CACHE: self.gateway_cache_hit,
        }
        self.row.prompt_tokens = _first(prompt.tokens, self.prompt_tokens)
        self.row.completion_tokens = response.tokens
        self.row.flags = tuple(flag for flag, is_set in flags.items() if is_set)
        return self.row


class RequestRows:
    """Makes the rows of one partition's requests; take its records in event order.

    A request gets its row when its response is whole. One without, such as a request that failed,
    gets it `keep_ms` of event time after its start.
    """

    def __init__(self, *, keep_ms: int, max_waiting: int = MAX_WAITING) -> None:
        self._keep_ms = keep_ms
        self._max_waiting = max_waiting
        self._waiting: dict[_Request, _Waiting] = {}

    def __len__(self) -> int:
        """Requests that are waited for."""
        return len(self._waiting)

    def add(self, record: SequenceRecord) -> list[RequestRow]:
        """Take a record; return the row it finished, or that of the oldest request if too many."""
        request = _Request(record.tenant, record.request_id, record.started_at_ms)
        waiting = self._waiting.get(request)
        if waiting is None:
            waiting = self._waiting[request] = _Waiting(record)
        waiting.add(record)
        if waiting.sides[Kind.RESPONSE].complete:
            return [self._finish(request)]
        if len(self._waiting) > self._max_waiting:
            return [self._finish(next(iter(self._waiting)))]
        return []

    def expire(self, watermark_ms: int) -> list[RequestRow]:
        """Return the rows of requests that are no longer waited for at this event time."""
        rows = []
        while self._waiting:
            oldest = next(iter(self._waiting))
            if oldest.started_at_ms + self._keep_ms > watermark_ms:
                break
            rows.append(self._finish(oldest))
        return rows

    def drain(self) -> list[RequestRow]:
        """Return the rows of all requests that are still waited for."""
        return [self._finish(request) for request in list(self._waiting)]

    def _finish(self, request: _Request) -> RequestRow:
        return self._waiting.pop(request).finished()


def rejection_row(event: EngineEvent) -> RequestRow | None:
    """Return the row of a rejected request; None for other events and those that name no request.

    Its start is the event's when the engine did not say when the request was made.
    """
    if event.kind is not EventKind.REJECTED or event.tenant is None or event.request_id is None:
        return None
    return RequestRow(
        tenant=event.tenant,
        request_id=event.request_id,
        kv_pool=event.kv_pool,
        engine=event.engine,
        model="",
        started_at_ms=event.at_ms if event.created_at_ms is None else event.created_at_ms,
        ended_at_ms=event.at_ms,
        prompt_tokens=event.prompt_tokens,
        rejected_by=event.detail or REJECTED_BY_ENGINE,
    )


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
