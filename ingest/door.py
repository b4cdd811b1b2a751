"""The door: raw token ids go in, keyed hashes come out, and no raw id gets any further.

Every request is checked against the bounds of a record, given its tenant, hashed, marked with role
spans and cut into parts. What is refused is counted by reason, never raised.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from detector.errors import RecordError
from detector.heartbeat import is_reserved
from detector.model import (
    MAX_SEQUENCE_TOKENS,
    PART_OVERLAP,
    EngineId,
    Hashes,
    Kind,
    PoolId,
    RequestId,
    Sequence,
    Span,
    TenantId,
)
from detector.sketch.token_table import TokenTable, checked_ids
from ingest.chat_template import ChatTemplate
from ingest.limits import MAX_COUNT, MAX_SIDE_TOKENS, MAX_TEXT_CHARS, MAX_TIME_MS
from ingest.message_roles import told_by
from ingest.names import is_name
from ingest.request_rows import GATEWAY_CACHE, IDS_NOT_LOGGED
from ingest.schema_records import RequestRow
from ingest.sources.base import CoverageSink, RawRequest
from ingest.tenancy import Tenancy

UNKNOWN_ENGINE: Final = "unknown"
"""Engine and KV pool of requests whose source names neither: they share one pool."""

MAX_STATUS: Final = 999


class _Part(NamedTuple):
    """One part of a side; span positions count from the part's own first token."""

    number: int
    total: int
    hashes: Hashes
    spans: tuple[Span, ...]


class Door:
    """Turns the requests of one or more sources into sequences under one key.

    Refusal reasons: bad_text, time_range, number_range, too_many_tokens, token_id_range,
    reserved_tenant. A request is refused whole: an answer without its own prompt would look like a
    bleed of that prompt.
    """

    def __init__(
        self,
        table: TokenTable,
        tenancy: Tenancy,
        template: ChatTemplate,
        coverage: CoverageSink,
        *,
        default_engine: str = UNKNOWN_ENGINE,
    ) -> None:
        self._table = table
        self._tenancy = tenancy
        self._template = template
        self._coverage = coverage
        self._default_engine = default_engine

    def sequences(self, request: RawRequest) -> list[Sequence]:
        """Return the prompt's parts, then the response's; a side that was not logged has none.

        A logged side without tokens is one sequence of length 0. The request's ids are dropped from
        it in any case. Returns [] for a request that is refused or that no tenant rule matches.
        """
        try:
            return self._admit(request)
        except RecordError as error:
            self._coverage.broken(error.reason)
            return []
        finally:
            request.prompt_ids = request.response_ids = None

    def row(self, request: RawRequest) -> RequestRow | None:
        """Return the row of a request whose log holds ids of neither side: nothing to search.

        To be called in place of `sequences`. None for a request that is refused or unmapped.
        """
        try:
            tenant = self._tenant(request)
        except RecordError as error:
            self._coverage.broken(error.reason)
            return None
        if tenant is None:
            return None
        engine = request.engine or self._default_engine
        return RequestRow(
            tenant=tenant,
            request_id=request.request_id,
            kv_pool=request.kv_pool or engine,
            engine=engine,
            model=request.model or "",
            started_at_ms=request.started_at_ms,
            ended_at_ms=request.ended_at_ms,
            prompt_tokens=request.reported_prompt_tokens,
            finish_reason=request.finish_reason,
            status=request.status,
            flags=(IDS_NOT_LOGGED,) + (GATEWAY_CACHE,) * request.gateway_cache_hit,
        )

    def _tenant(self, request: RawRequest) -> str | None:
        """Check a request and return its tenant; None, and counted, when no rule matches."""
        _check_texts(request)
        _check_numbers(request)
        tenant = self._tenancy.tenant(request)
        if tenant is None:
            self._coverage.unmapped()
        else:
            _check_text(tenant)
            _check_free(tenant)
        return tenant

    def _admit(self, request: RawRequest) -> list[Sequence]:
        tenant = self._tenant(request)
        if tenant is None:
            return []
        made: list[Sequence] = []
        prompt_tokens = None if request.prompt_ids is None else len(request.prompt_ids)
        for kind, ids in (
            (Kind.PROMPT, request.prompt_ids),
            (Kind.RESPONSE, request.response_ids),
        ):
            if ids is None:
                continue
            made += [
                self._sequence(request, tenant, kind, part, prompt_tokens)
                for part in self._parts(ids, kind, request.roles)
            ]
        return made

    def _parts(self, ids: list[int], kind: Kind, roles: tuple[str, ...] | None) -> Iterator[_Part]:
        if len(ids) > MAX_SIDE_TOKENS:
            raise RecordError("too_many_tokens", f"more than {MAX_SIDE_TOKENS} tokens")
        exact = checked_ids(ids)
        spans = self._template.spans(exact) if kind is Kind.PROMPT else ()
        if roles is not None:
            spans = told_by(roles, spans)
        return split(self._table.hash(exact), spans)

    def _sequence(
        self,
        request: RawRequest,
        tenant: str,
        kind: Kind,
        part: _Part,
        prompt_tokens: int | None,
    ) -> Sequence:
        started = request.started_at_ms
        ended = started
        if kind is Kind.RESPONSE and request.ended_at_ms is not None:
            # an end before the start is a clock that was set back: the start is all we know
            ended = max(started, request.ended_at_ms)
        engine = request.engine or self._default_engine
        return Sequence(
            tenant=TenantId(tenant),
            request_id=RequestId(request.request_id),
            kv_pool=PoolId(request.kv_pool or engine),
            engine=EngineId(engine),
            model=request.model or "",
            kind=kind,
            started_at_ms=started,
            ended_at_ms=ended,
            token_hashes=part.hashes,
            key_id=self._table.key_id,
            account=request.account,
            parent_id=None if request.parent_id is None else RequestId(request.parent_id),
            part=part.number,
            parts=part.total,
            prompt_token_count=prompt_tokens,
            finish_reason=request.finish_reason,
            status=request.status,
            reported_prompt_tokens=request.reported_prompt_tokens,
            gateway_cache_hit=request.gateway_cache_hit,
            session=request.session,
            end_user=request.end_user,
            spans=part.spans,
        )


def split(hashes: Hashes, spans: tuple[Span, ...]) -> Iterator[_Part]:
    """Cut one side into parts of at most MAX_SEQUENCE_TOKENS that share PART_OVERLAP tokens.

    Every run of PART_OVERLAP + 1 tokens lies whole in a part. Spans are cut with their part.
    """
    step = MAX_SEQUENCE_TOKENS - PART_OVERLAP
    count = max(1, -(-(len(hashes) - PART_OVERLAP) // step))
    if count == 1:
        yield _Part(0, 1, hashes, spans)
        return
    for number in range(count):
        start = number * step
        end = min(len(hashes), start + MAX_SEQUENCE_TOKENS)
        cut = tuple(
            Span(span.role, max(span.start, start) - start, min(span.end, end) - start)
            for span in spans
            if span.start < end and span.end > start
        )
        yield _Part(number, count, hashes[start:end], cut)


def _check_texts(request: RawRequest) -> None:
    if not request.request_id:
        raise RecordError("bad_text", "the request id is empty")
    for text in (
        request.request_id,
        request.engine,
        request.kv_pool,
        request.model,
        request.account,
        request.parent_id,
        request.session,
        request.end_user,
        request.finish_reason,
    ):
        if text is not None:
            _check_text(text)


def _check_text(text: str) -> None:
    """Refuse what is too long, or holds control characters or lone surrogates."""
    if text and not is_name(text):
        raise RecordError(
            "bad_text", f"a name is longer than {MAX_TEXT_CHARS} characters or not printable"
        )


def _check_free(tenant: str) -> None:
    """Refuse a name under which nothing would be told to anybody."""
    if is_reserved(tenant):
        raise RecordError("reserved_tenant", "the tenant has a name of heartbeats")


def _check_numbers(request: RawRequest) -> None:
    for time in (request.started_at_ms, request.ended_at_ms):
        if time is not None and not -MAX_TIME_MS <= time <= MAX_TIME_MS:
            raise RecordError("time_range", "a time lies outside the years 1 to 9999")
    for number, most in ((request.status, MAX_STATUS), (request.reported_prompt_tokens, MAX_COUNT)):
        if number is not None and not 0 <= number <= most:
            raise RecordError("number_range", f"a number is not from 0 to {most}")
