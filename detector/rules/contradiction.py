"""Rules BW101 to BW104: what is known of one request contradicts itself.

They need no overlap of text and no learning: a request that was rejected has no answer, and an id
names one request. Each is high, and its id is that of the request.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Final, NamedTuple

import xxhash

from detector.finding import NO_OVERLAP, Confidence, Finding, Party, Severity
from detector.model import Kind
from detector.runtime.limits import Limit
from detector.runtime.requests import Rejection, Request, SameId
from detector.runtime.settings import RuntimeSettings

REJECTED_ANSWERED: Final = "BW101"
OVER_LIMIT_ANSWERED: Final = "BW102"
USAGE_MISMATCH: Final = "BW103"
REUSED_ID: Final = "BW104"

ANSWERED_ANYWAY: Final = frozenset({REJECTED_ANSWERED, OVER_LIMIT_ANSWERED})
"""Rules whose findings are evidence for content findings nearby."""

OTHER_REQUEST: Final = frozenset({"duplicate_id"})
"""Details of rejections that are about a second request with the id of one that runs."""

MOST_TOLD: Final = 1_024
"""Findings remembered of one id: a gateway that gives all requests one id makes some for each."""

LimitOf = Callable[[Request], Limit | None]
"""Tells how long a prompt the engine accepted that read a request."""


class Contradiction(NamedTuple):
    """A finding, and whether anything that it rests on is news."""

    finding: Finding
    is_news: bool


class Contradictions:
    """Judges what is known of one request id. `window_ms` is how far two requests may be apart."""

    def __init__(self, settings: RuntimeSettings, *, window_ms: int, limit_of: LimitOf) -> None:
        self._settings = settings
        self._window_ms = window_ms
        self._limit_of = limit_of

    def judge(self, same: SameId, *, now_ms: int) -> Iterator[Contradiction]:
        """Yield what was not yet told of an id; `now_ms` is the event time of the decision."""
        for found in self._all(same, now_ms):
            if found.finding.id not in same.told:
                same.told[found.finding.id] = None
                if len(same.told) > MOST_TOLD:
                    del same.told[next(iter(same.told))]
                yield found

    def _all(self, same: SameId, now_ms: int) -> Iterator[Contradiction]:
        for request in same.requests:
            if request.is_answered:
                yield from self._rejected(request, same.rejections.items(), now_ms)
                yield from self._over_limit(request, now_ms)
                yield from self._usage(request, now_ms)
        yield from self._reused(same, now_ms)

    def _rejected(
        self, request: Request, rejections: Iterable[tuple[Rejection, bool]], now_ms: int
    ) -> Iterator[Contradiction]:
        margin_ms = self._settings.join_margin_ms
        first_ms = request.started_at_ms - margin_ms
        last_ms = _end(request) + margin_ms
        about = [
            (rejection, is_news)
            for rejection, is_news in rejections
            if first_ms <= rejection.at_ms <= last_ms
            and rejection.tenant in (None, request.tenant)
            and rejection.detail not in OTHER_REQUEST
        ]
        if not about:
            return
        rejection = min(about, key=lambda one: (one[0].at_ms, one[0].engine))[0]
        numbers = {"rejected_at_ms": rejection.at_ms, "prompt_tokens": rejection.prompt_tokens}
        yield Contradiction(
            _finding(
                REJECTED_ANSWERED,
                request,
                source=_prompt_of(request, rejection.prompt_tokens),
                sentence=f"Engine {rejection.engine} rejected {_named(request)}"
                f"{_sizes(rejection)}, yet it was answered{_answer(request)}.",
                numbers={**numbers, "limit_tokens": rejection.limit_tokens, **_told(request)},
                now_ms=now_ms,
            ),
            request.is_news or any(is_news for _, is_news in about),
        )

    def _over_limit(self, request: Request, now_ms: int) -> Iterator[Contradiction]:
        limit, tokens = self._limit_of(request), request.prompt_tokens
        if limit is None or tokens is None or tokens <= limit.tokens:
            return
        sentence = (
            f"The prompt of {_named(request)} has {tokens:,} tokens, more than "
            f"the {limit.tokens:,} that its engine can hold, yet it was answered{_answer(request)}."
        )
        yield Contradiction(
            _finding(
                OVER_LIMIT_ANSWERED,
                request,
                source=_prompt_of(request, tokens),
                sentence=sentence,
                numbers={"prompt_tokens": tokens, "limit_tokens": limit.tokens, **_told(request)},
                now_ms=now_ms,
            ),
            request.is_news or limit.is_news,
        )

    def _usage(self, request: Request, now_ms: int) -> Iterator[Contradiction]:
        """Fewer tokens than sent only: pictures and sound grow behind the place that holds them."""
        sent, reported = request.prompt_tokens, request.reported_prompt_tokens
        if sent is None or reported is None:
            return
        few = reported < sent * self._settings.usage_share
        if not few or sent - reported < self._settings.usage_tokens:
            return
        yield Contradiction(
            _finding(
                USAGE_MISMATCH,
                request,
                source=_prompt_of(request, sent),
                sentence=f"The engine reports {reported:,} prompt tokens for {_named(request)}, "
                f"but {sent:,} were sent: it answered something else{_answer(request)}.",
                numbers={"prompt_tokens": sent, "reported_prompt_tokens": reported},
                now_ms=now_ms,
            ),
            request.is_news,
        )

    def _reused(self, same: SameId, now_ms: int) -> Iterator[Contradiction]:
        in_order = sorted(same.requests, key=lambda one: (one.started_at_ms, one.tenant))
        for first, second in combinations(in_order, 2):
            apart_ms = second.started_at_ms - first.started_at_ms
            if first.tenant == second.tenant or apart_ms > self._window_ms:
                continue
            if first.account is not None and first.account == second.account:
                continue
            sentence = (
                f"Request {second.request_id} of tenant {second.tenant} has the id of "
                f"a request that tenant {first.tenant} started {apart_ms / 1000:.1f} s earlier in "
                "the same pool: engines keep state by request id, so one may get what belongs to "
                "the other."
            )
            yield Contradiction(
                _finding(
                    REUSED_ID,
                    second,
                    source=_party(first),
                    sentence=sentence,
                    numbers={"apart_ms": apart_ms},
                    now_ms=now_ms,
                ),
                first.is_news or second.is_news,
            )


def _finding(
    rule: str,
    request: Request,
    *,
    source: Party,
    sentence: str,
    numbers: dict[str, int | None],
    now_ms: int,
) -> Finding:
    name = "\0".join(
        (rule, request.kv_pool, request.tenant, request.request_id, str(request.started_at_ms))
        + ((source.tenant,) if rule == REUSED_ID else ())
    )
    return Finding(
        id=xxhash.xxh3_128_hexdigest(name.encode()),
        rule=rule,
        severity=Severity.HIGH,
        confidence=Confidence.HIGH,
        kv_pool=request.kv_pool,
        engine=request.engine,
        model=request.model,
        observed_at_ms=_end(request),
        detected_at_ms=max(now_ms, _end(request)),
        sink=_party(request),
        source=source,
        other_sources=(),
        evidence=NO_OVERLAP,
        explanation=sentence,
        runtime={key: f"{value:,}" for key, value in numbers.items() if value is not None},
    )


def _end(request: Request) -> int:
    return request.started_at_ms if request.ended_at_ms is None else request.ended_at_ms


def _party(request: Request) -> Party:
    kind = Kind.PROMPT if request.ended_at_ms is None else Kind.RESPONSE
    return Party(
        tenant=request.tenant, request_id=request.request_id, kind=kind.value,
        started_at_ms=request.started_at_ms, ended_at_ms=_end(request),
        prompt_tokens=request.prompt_tokens,
    )  # fmt: skip


def _prompt_of(request: Request, tokens: int | None) -> Party:
    at_ms = request.started_at_ms
    return Party(
        tenant=request.tenant, request_id=request.request_id, kind=Kind.PROMPT.value,
        started_at_ms=at_ms, ended_at_ms=at_ms, prompt_tokens=tokens,
    )  # fmt: skip


def _named(request: Request) -> str:
    return f"request {request.request_id} of tenant {request.tenant}"


def _sizes(rejection: Rejection) -> str:
    if rejection.prompt_tokens is None:
        return ""
    limit = "" if rejection.limit_tokens is None else f", its limit is {rejection.limit_tokens:,}"
    return f" (its prompt has {rejection.prompt_tokens:,} tokens{limit})"


def _answer(request: Request) -> str:
    told = [] if request.response.tokens is None else [f"{request.response.tokens:,} tokens"]
    told += [] if request.status is None else [f"status {request.status}"]
    return f" ({', '.join(told)})" if told else ""


def _told(request: Request) -> dict[str, int | None]:
    return {"response_tokens": request.response.tokens, "status": request.status}
