"""What is pushed: requests with raw token ids, and runtime samples; JSON or MessagePack alike.

Unknown fields are ignored. Raw ids live from here to the door and no further; the repr of what
holds them shows none.
"""

from collections.abc import Callable
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta

from detector.errors import RecordError
from ingest.limits import MAX_SIDE_TOKENS
from ingest.schema import Encoding
from ingest.schema_records import Count, Name, RuntimeSample, Status, Text, TimeMs
from ingest.sources.base import Loss, RawRequest

MAX_REQUESTS: Final = 1_000
"""Requests of one push."""

MAX_SAMPLES: Final = 1_000

MAX_IDENTITY: Final = 64
"""Fields that tenant rules may look at."""

Ids = Annotated[list[int], Meta(max_length=MAX_SIDE_TOKENS, description="Raw token ids.")]


class PushedRequest(msgspec.Struct, gc=False, kw_only=True, omit_defaults=True):
    """One request as a gateway knows it.

    A side that is absent was not recorded; an empty one had no tokens. `identity` holds what the
    tenant rules read besides `tenant`, such as "header:x-tenant-id" or "user".
    """

    request_id: Name
    started_at_ms: TimeMs
    ended_at_ms: TimeMs | None = None
    prompt_ids: Ids | None = None
    response_ids: Ids | None = None
    tenant: Text | None = None
    engine: Name | None = None
    kv_pool: Name | None = None
    model: Text | None = None
    account: Text | None = None
    parent_id: Name | None = None
    session: Text | None = None
    end_user: Text | None = None
    finish_reason: Text | None = None
    status: Status | None = None
    reported_prompt_tokens: Count | None = None
    gateway_cache_hit: bool = False
    identity: Annotated[dict[Name, Text], Meta(max_length=MAX_IDENTITY)] = {}

    def __repr__(self) -> str:
        """Show no ids and no identity."""
        return f"PushedRequest({self.request_id!r})"


class PushedSequences(msgspec.Struct):
    """The body of POST /v1/sequences."""

    requests: Annotated[list[PushedRequest], Meta(min_length=1, max_length=MAX_REQUESTS)]


class PushedSamples(msgspec.Struct):
    """The body of POST /v1/runtime."""

    samples: Annotated[list[RuntimeSample], Meta(min_length=1, max_length=MAX_SAMPLES)]


_REQUESTS: Final = {
    Encoding.JSON: msgspec.json.Decoder(PushedSequences).decode,
    Encoding.MSGPACK: msgspec.msgpack.Decoder(PushedSequences).decode,
}
_SAMPLES: Final = {
    Encoding.JSON: msgspec.json.Decoder(PushedSamples).decode,
    Encoding.MSGPACK: msgspec.msgpack.Decoder(PushedSamples).decode,
}

_T = TypeVar("_T")


def decode_requests(body: bytes, encoding: Encoding) -> list[PushedRequest]:
    """Decode a push of requests; raises RecordError undecodable, wrong_type or too_deep."""
    return _decoded(_REQUESTS[encoding], body, encoding).requests


def decode_samples(body: bytes, encoding: Encoding) -> list[RuntimeSample]:
    """Decode a push of samples; raises RecordError undecodable, wrong_type or too_deep."""
    return _decoded(_SAMPLES[encoding], body, encoding).samples


def raw(request: PushedRequest) -> RawRequest:
    """Return the form that the door takes; the ids go over and are gone from the request."""
    made = RawRequest(
        request_id=request.request_id,
        started_at_ms=request.started_at_ms,
        ended_at_ms=request.ended_at_ms,
        prompt_ids=request.prompt_ids,
        response_ids=request.response_ids,
        prompt_loss=Loss.NOT_LOGGED if request.prompt_ids is None else None,
        response_loss=Loss.NOT_LOGGED if request.response_ids is None else None,
        engine=request.engine,
        kv_pool=request.kv_pool,
        model=request.model,
        account=request.account,
        parent_id=request.parent_id,
        session=request.session,
        end_user=request.end_user,
        finish_reason=request.finish_reason,
        status=request.status,
        reported_prompt_tokens=request.reported_prompt_tokens,
        gateway_cache_hit=request.gateway_cache_hit,
        identity={name.lower(): value for name, value in request.identity.items()},
    )
    for name, value in (("tenant", request.tenant), ("session_id", request.session)):
        if value is not None:
            made.identity.setdefault(name, value)
    request.prompt_ids = request.response_ids = None
    return made


def _decoded(decode: Callable[[bytes], _T], body: bytes, encoding: Encoding) -> _T:
    try:
        return decode(body)
    except msgspec.ValidationError:
        # the library's message may hold a value
        raise RecordError(
            "wrong_type", "a field is missing, or has a wrong type, length or range"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, OverflowError):
        raise RecordError("undecodable", f"the body is not {encoding.name}") from None
    except RecursionError:
        raise RecordError("too_deep", "the body is nested too deeply") from None
