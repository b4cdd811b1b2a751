"""Reads our own documented form, one JSON object a line with the token ids of one request.

Other people's JSON access logs are read through a `FieldMap`; docs/input-format.md has both.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from detector.errors import RecordError
from ingest.limits import MAX_TIME_MS
from ingest.sources.base import CoverageSink, Loss, RawRequest
from ingest.sources.field_map import FieldMap, TimeUnit, mapped_fields
from ingest.sources.unshown import Unshown

_MS_PER_UNIT: Final = {"s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}

_Text = str | int | None  # ids and names are numbers in some logs


class _Line(Unshown, gc=False):
    """One line; names are those of the documented form. Unknown fields are ignored."""

    request_id: _Text = None
    ts: float | str | None = None
    ts_end: float | str | None = None
    node: _Text = None
    engine: _Text = None
    kv_pool: _Text = None
    tenant: _Text = None
    model: str | None = None
    session: _Text = None
    account: _Text = None
    end_user: _Text = None
    parent_id: _Text = None
    api_key_hash: str | None = None
    cache_salt: _Text = None
    extra_key: _Text = None
    headers: dict[str, str] | None = None
    finish_reason: str | None = None
    status: int | None = None
    reported_prompt_tokens: int | None = None
    gateway_cache_hit: bool | None = None
    prompt_ids: list[int] | None = None
    response_ids: list[int] | None = None
    identity: dict[str, str] | None = None


class JsonlLog:
    """Requests of a JSON-lines log, in file order; iterate once.

    `engine` names the engine (and KV pool) of lines that do not. A line that cannot be used is
    counted in `coverage` as broken with its reason and skipped; empty lines are not records.
    Reasons: not_json, too_deep, wrong_type, missing_field, time_range.
    """

    def __init__(
        self,
        lines: Iterable[tuple[int, bytes]],
        *,
        engine: str | None,
        coverage: CoverageSink,
        fields: FieldMap | None = None,
    ) -> None:
        self._lines = lines
        self._engine = engine
        self._coverage = coverage
        self._fields = None if fields is None or fields.is_own_form else fields
        self._unit: TimeUnit = fields.time if fields else "s"
        self._decoder = msgspec.json.Decoder(_Line)
        self._any_decoder = msgspec.json.Decoder()

    def __iter__(self) -> Iterator[RawRequest]:
        for number, content in self._lines:
            yield from self.take(number, content)

    def take(self, number: int, raw: bytes) -> Iterable[RawRequest]:
        """Read one line; return its request."""
        self._coverage.lines += 1
        if not raw or raw.isspace():
            return ()
        try:
            request = self._request(self._decode(raw))
        except RecordError as error:
            self._coverage.broken(error.reason, number)
            return ()
        request.first_line = request.last_line = number
        self._coverage.read(request)
        return (request,)

    def end(self, *, is_read_again: bool = False) -> Iterator[RawRequest]:  # noqa: ARG002 - nothing broken is held
        """Yield nothing: a line is a whole request."""
        return iter(())

    def oldest_line(self) -> int | None:
        """Return None: a line is a whole request."""
        return None

    def _decode(self, content: bytes) -> _Line:
        try:
            if self._fields is None:
                return self._decoder.decode(content)
            found = mapped_fields(self._any_decoder.decode(content), self._fields)
            return msgspec.convert(found, _Line)
        except msgspec.ValidationError:
            raise RecordError("wrong_type", "a field has the wrong type") from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise RecordError("not_json", "the line is not a JSON object") from None
        except RecursionError:
            raise RecordError("too_deep", "the JSON is nested too deeply") from None

    def _request(self, line: _Line) -> RawRequest:
        request_id, started = _text(line.request_id), line.ts
        if not request_id or started is None:
            raise RecordError("missing_field", "request_id or ts is missing")
        node = _text(line.node)
        engine = _text(line.engine) or node or self._engine
        return RawRequest(
            request_id=request_id,
            started_at_ms=_milliseconds(started, self._unit),
            ended_at_ms=None if line.ts_end is None else _milliseconds(line.ts_end, self._unit),
            prompt_ids=line.prompt_ids,
            response_ids=line.response_ids,
            prompt_loss=Loss.NOT_LOGGED if line.prompt_ids is None else None,
            response_loss=Loss.NOT_LOGGED if line.response_ids is None else None,
            engine=engine,
            kv_pool=_text(line.kv_pool) or node or engine,
            model=line.model,
            account=_text(line.account),
            parent_id=_text(line.parent_id),
            session=_text(line.session),
            end_user=_text(line.end_user),
            finish_reason=line.finish_reason,
            status=line.status,
            reported_prompt_tokens=line.reported_prompt_tokens,
            gateway_cache_hit=bool(line.gateway_cache_hit),
            identity=_identity(line),
        )


def _text(value: _Text) -> str | None:
    if isinstance(value, str) or value is None:
        return value
    # a number of thousands of digits is no id, and int to str refuses it
    return str(value) if value.bit_length() <= 64 else None


def _milliseconds(value: float | str, unit: TimeUnit) -> int:
    """Return milliseconds since the epoch. Raises RecordError("time_range" or "wrong_type")."""
    if unit == "rfc3339":
        number = _moment(value)
    elif isinstance(value, str):
        raise RecordError("wrong_type", "a time is text, but the unit says number")
    else:
        number = value * _MS_PER_UNIT[unit]
    if not -MAX_TIME_MS <= number <= MAX_TIME_MS:  # also false for NaN
        raise RecordError("time_range", "a time lies outside the years 1 to 9999")
    return round(number)


def _moment(value: float | str) -> float:
    """Read an RFC 3339 time; one without an offset is taken as UTC."""
    try:
        moment = datetime.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise RecordError("wrong_type", "a time is not in RFC 3339 form") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return moment.timestamp() * _MS_PER_UNIT["s"]
    except (OverflowError, ValueError):
        raise RecordError("time_range", "a time lies outside the years 1 to 9999") from None


def _identity(line: _Line) -> dict[str, str]:
    """Collect what tenant rules may look at, by lower-case name."""
    found: dict[str, str] = {}
    for name, value in (
        ("tenant", line.tenant),
        ("account", line.account),
        ("user", line.end_user),
        ("session_id", line.session),
        ("cache_salt", line.cache_salt),
        ("extra_key", line.extra_key),
        ("api_key_hash", line.api_key_hash),
        ("node", line.node),
        ("model", line.model),
    ):
        if value is not None and (text := _text(value)):
            found[name] = text
    if line.headers:
        found |= {f"header:{name.lower()}": value for name, value in line.headers.items()}
    if line.identity:
        found |= {name.lower(): value for name, value in line.identity.items()}
    return found
