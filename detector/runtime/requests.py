"""What is known of each request besides its tokens: told by its sequences and by engine events."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from detector.model import PART_OVERLAP, Kind
from detector.runtime.records import Event, RequestPart

MAX_IDS: Final = 100_000
"""Request ids remembered in one partition, about 1 KB each; the oldest goes first."""

MAX_PER_ID: Final = 16
"""Requests and rejections remembered of one id: who repeats an id more often repeats evidence."""

NOT_ANSWERED: Final = frozenset({"abort", "aborted", "cancelled", "error"})
"""Finish reasons of requests whose client got an error: tokens that there are were no answer."""

_OK = range(200, 300)


class Side:
    """The parts of a prompt or response that have come, each once; `tokens` of the whole."""

    def __init__(self) -> None:
        self._tokens: dict[int, int] = {}
        self._parts = 1

    def add(self, record: RequestPart) -> None:
        """Take a part."""
        self._tokens[record.part] = record.token_count
        self._parts = record.parts

    @property
    def some(self) -> bool:
        """True if any tokens have come."""
        return any(self._tokens.values())

    @property
    def tokens(self) -> int | None:
        """Length of the side, None while a part is missing or if it came without token ids."""
        if not self.some or len(self._tokens) != self._parts:
            return None
        return sum(self._tokens.values()) - PART_OVERLAP * (self._parts - 1)


@dataclass(slots=True, kw_only=True)
class Request:
    """One request of one tenant: (tenant, request id, start) names it."""

    tenant: str
    request_id: str
    kv_pool: str
    started_at_ms: int
    engine: str
    model: str
    account: str | None
    prompt: Side = field(default_factory=Side)
    response: Side = field(default_factory=Side)
    ended_at_ms: int | None = None
    """End of the response, None before it came."""
    told_prompt_tokens: int | None = None
    reported_prompt_tokens: int | None = None
    finish_reason: str | None = None
    status: int | None = None
    is_news: bool = False

    def add(self, record: RequestPart, *, is_news: bool) -> None:
        """Take a part of its prompt or response."""
        self.is_news |= is_news
        if record.kind == Kind.RESPONSE:
            self.response.add(record)
            self.ended_at_ms, self.engine = record.ended_at_ms, record.engine
        else:
            self.prompt.add(record)
        if record.prompt_token_count is not None:
            self.told_prompt_tokens = record.prompt_token_count
        if record.reported_prompt_tokens is not None:
            self.reported_prompt_tokens = record.reported_prompt_tokens
        self.status = self.status if record.status is None else record.status
        self.finish_reason = record.finish_reason or self.finish_reason

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens that were sent: counted where the prompt came, else as the log says."""
        return self.told_prompt_tokens if self.prompt.tokens is None else self.prompt.tokens

    @property
    def is_answered(self) -> bool:
        """True if the client got a completion: status 2xx, or tokens where no status is known."""
        if self.ended_at_ms is None or (self.finish_reason or "").lower() in NOT_ANSWERED:
            return False
        return self.response.some if self.status is None else self.status in _OK


class Rejection(NamedTuple):
    """An engine said that it rejects a request."""

    at_ms: int
    engine: str
    tenant: str | None
    prompt_tokens: int | None
    limit_tokens: int | None
    detail: str | None


@dataclass(slots=True)
class SameId:
    """All that carries one request id in one pool."""

    requests: list[Request] = field(default_factory=list)
    rejections: dict[Rejection, bool] = field(default_factory=dict)
    """Each with whether it is news."""
    told: dict[str, None] = field(default_factory=dict)
    """Ids of the findings made of it, the last ones: what is told again has the same id."""
    newest_ms: int = 0


class RequestTable:
    """The requests of a partition by pool and id, in the order in which they were last heard of."""

    def __init__(self, *, keep_ms: int) -> None:
        self._keep_ms = keep_ms
        self._of: OrderedDict[tuple[str, str], SameId] = OrderedDict()

    def __len__(self) -> int:
        """Request ids remembered."""
        return len(self._of)

    def add(self, record: RequestPart, *, is_news: bool) -> SameId:
        """Take a part of a prompt or response; return all that has its id."""
        same = self._same(record.kv_pool, record.request_id, record.ended_at_ms)
        request = next((one for one in same.requests if _is_of(record, one)), None)
        if request is None:
            request = Request(
                tenant=record.tenant, request_id=record.request_id, kv_pool=record.kv_pool,
                started_at_ms=record.started_at_ms, engine=record.engine, model=record.model,
                account=record.account,
            )  # fmt: skip
            same.requests.append(request)
            del same.requests[:-MAX_PER_ID]
        request.add(record, is_news=is_news)
        return same

    def reject(self, event: Event, request_id: str, *, is_news: bool) -> SameId:
        """Take a rejection of a request; return all that has its id."""
        same = self._same(event.kv_pool, request_id, event.at_ms)
        rejection = Rejection(
            event.at_ms, event.engine, event.tenant, event.prompt_tokens, event.limit_tokens,
            event.detail,
        )  # fmt: skip
        same.rejections[rejection] = is_news or same.rejections.get(rejection, False)
        while len(same.rejections) > MAX_PER_ID:
            del same.rejections[next(iter(same.rejections))]
        return same

    def end_of(self, kv_pool: str, request_id: str, tenant: str | None) -> int | None:
        """Return when the last response under an id (of a tenant, if it is known) ended."""
        same = self._of.get((kv_pool, request_id))
        ends = [
            one.ended_at_ms
            for one in ([] if same is None else same.requests)
            if one.ended_at_ms is not None and tenant in (None, one.tenant)
        ]
        return max(ends, default=None)

    def of_pool(self, kv_pool: str) -> Iterator[SameId]:
        """Yield all that is known of a pool."""
        for (pool, _), same in self._of.items():
            if pool == kv_pool:
                yield same

    def expire(self, now_ms: int) -> None:
        """Forget what was last heard of too long before this event time."""
        while self._of:
            first = next(iter(self._of.values()))
            if first.newest_ms >= now_ms - self._keep_ms and len(self._of) <= MAX_IDS:
                return
            self._of.popitem(last=False)

    def _same(self, kv_pool: str, request_id: str, at_ms: int) -> SameId:
        key = (kv_pool, request_id)
        same = self._of.setdefault(key, SameId())
        self._of.move_to_end(key)
        same.newest_ms = max(same.newest_ms, at_ms)
        return same


def _is_of(record: RequestPart, request: Request) -> bool:
    return record.started_at_ms == request.started_at_ms and record.tenant == request.tenant
