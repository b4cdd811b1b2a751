"""Generates the traffic of some engines: requests of many tenants, and those of the day before."""

from dataclasses import dataclass
from random import Random

from detector.model import EngineId, RequestId, Role, TenantId
from detector.sample.chatml import Message, render
from detector.sample.language import Ids, Language
from detector.sample.public import PublicQuestions
from detector.sample.tenants import Tenant, engine_names, make_tenants
from detector.sample.tokenizer import IM_END
from detector.sample.writer import Answer, Writer

DAY_S = 86_400.0

HOME_CHANCE = 0.75
"""Share of sessions that their tenant's own engine serves; the others go anywhere."""

PUBLIC_QUESTION_CHANCE = 0.08
NEXT_TURN_CHANCE = 0.3
MAX_TURNS = 6
THINK_S = (2.0, 40.0)
"""Seconds between an answer's end and the next question of the session."""

PREFILL_S_PER_TOKEN = 0.0003
QUEUE_S = (0.03, 0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSettings:
    """How much traffic. The defaults are the demo's: about 300,000 tokens in ten minutes."""

    tenants: int = 12
    engines: int = 3
    requests: int = 600
    duration_s: float = 600.0
    history_requests: int = 400


COMMON_TENANTS = 3
"""Tenants that show a text for it to be common whoever the source and the receiver are."""

EVAL_SETTINGS = TrafficSettings(requests=3000, duration_s=3000.0, history_requests=2000)
"""Traffic to measure on: the demo's density for fifty minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """One request with its answer. Times are seconds from the window's start, negative before it.

    `ts` is the arrival, `ts_first` and `ts_end` the first and last token of the answer.
    `node` names the engine, which is the KV pool; None for traffic of the day before.
    `response_ids` end with the end marker unless `finish_reason` is "length".
    """

    request_id: RequestId
    ts: float
    ts_first: float
    ts_end: float
    node: EngineId | None
    tenant: TenantId
    model: str
    session: str
    finish_reason: str
    prompt_ids: Ids
    response_ids: Ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Generated traffic; both lists are in order of arrival."""

    settings: TrafficSettings
    language: Language
    engines: tuple[EngineId, ...]
    tenants: tuple[Tenant, ...]
    requests: tuple[SampleRequest, ...]
    history: tuple[SampleRequest, ...]


def generate(rng: Random, language: Language, settings: TrafficSettings) -> Traffic:
    """Traffic that depends on the state of `rng`, the language and the settings alone."""
    engines = engine_names(settings.engines)
    tenants = make_tenants(rng, language, count=settings.tenants, engines=engines)
    writer = Writer(language)
    before = _Period(rng, writer, tenants, engines=(), start_s=-DAY_S, end_s=-1.0)
    history = (*before.requests(settings.history_requests), *_idioms_shown(writer, tenants))
    window = _Period(rng, writer, tenants, engines=engines, start_s=0.0, end_s=settings.duration_s)
    return Traffic(
        settings=settings,
        language=language,
        engines=engines,
        tenants=tenants,
        requests=window.requests(settings.requests),
        history=tuple(sorted(history, key=lambda request: request.ts)),
    )


def _idioms_shown(writer: Writer, tenants: tuple[Tenant, ...]) -> list[SampleRequest]:
    """Return three tenants' answers of the day before with every code idiom in them.

    The history is a small sample of a day: in a whole one, every idiom has been shown often.
    """
    rng = Random(0)  # noqa: S311 - made-up traffic, no secret
    day = _Period(rng, writer, tenants, engines=(), start_s=-DAY_S, end_s=-1.0)
    return [day.answered(tenant, writer.idioms()) for tenant in tenants[:COMMON_TENANTS]]


class _Period:
    """Traffic of one stretch of time; without engines the requests have no node."""

    def __init__(
        self,
        rng: Random,
        writer: Writer,
        tenants: tuple[Tenant, ...],
        *,
        engines: tuple[EngineId, ...],
        start_s: float,
        end_s: float,
    ) -> None:
        self._rng = rng
        self._writer = writer
        self._tenants = tenants
        self._weights = [tenant.weight for tenant in tenants]
        self._engines = engines
        self._start_s = start_s
        self._end_s = end_s
        self._public = PublicQuestions(rng, writer)
        self._session_count = 0

    def requests(self, count: int) -> tuple[SampleRequest, ...]:
        """`count` requests in order of arrival: sessions arrive as a Poisson process would.

        Given their number, the arrivals of a Poisson process are independent and uniform.
        """
        self._public.prepare(count)
        made: list[SampleRequest] = []
        while len(made) < count:
            made += self._session(self._rng.uniform(self._start_s, self._end_s))
        return tuple(sorted(made[:count], key=lambda request: request.ts))

    def answered(self, tenant: Tenant, answer: Answer) -> SampleRequest:
        """Return a request of its own with a given answer, at some time of the period."""
        asked = [Message(Role.USER, self._writer.follow_up(self._rng))]
        at_s = self._rng.uniform(self._start_s, self._end_s)
        return self._request(tenant, asked, answer, node=None, session="idioms", at_s=at_s)

    def _session(self, at_s: float) -> list[SampleRequest]:
        """One conversation, its history re-sent with every turn, until it or the period ends."""
        rng = self._rng
        (tenant,) = rng.choices(self._tenants, self._weights)
        node = self._node(tenant)
        self._session_count += 1
        prefix = "s" if node is not None else "h"
        session = f"{prefix}{self._session_count}"
        messages: list[Message] = []
        if tenant.system_prompt:
            messages.append(Message(Role.SYSTEM, tenant.system_prompt))
        made: list[SampleRequest] = []
        while at_s < self._end_s and len(made) < MAX_TURNS:
            question, answer = self._turn(tenant, at_s, is_first=not made)
            messages.append(Message(Role.USER, question))
            made.append(
                self._request(tenant, messages, answer, node=node, session=session, at_s=at_s)
            )
            messages.append(Message(Role.ASSISTANT, answer.ids))
            if rng.random() >= NEXT_TURN_CHANCE:
                break
            at_s = made[-1].ts_end + rng.uniform(*THINK_S)
        return made

    def _turn(self, tenant: Tenant, at_s: float, *, is_first: bool) -> tuple[Ids, Answer]:
        rng, writer = self._rng, self._writer
        if is_first and rng.random() < PUBLIC_QUESTION_CHANCE:
            return self._public.ask((at_s - self._start_s) / (self._end_s - self._start_s))
        question = writer.question(rng, tenant) if is_first else writer.follow_up(rng)
        return question, writer.answer(rng, tenant.kind, question)

    def _node(self, tenant: Tenant) -> EngineId | None:
        if not self._engines:
            return None
        at_home = self._rng.random() < HOME_CHANCE
        return tenant.engine if at_home else self._rng.choice(self._engines)

    def _request(
        self,
        tenant: Tenant,
        messages: list[Message],
        answer: Answer,
        *,
        node: EngineId | None,
        session: str,
        at_s: float,
    ) -> SampleRequest:
        prompt = render(messages)
        first = at_s + self._rng.uniform(*QUEUE_S) + PREFILL_S_PER_TOKEN * len(prompt)
        return SampleRequest(
            request_id=RequestId(f"req-{self._rng.getrandbits(64):016x}"),
            ts=round(at_s, 3),
            ts_first=round(first, 3),
            ts_end=round(first + len(answer.ids) * tenant.seconds_per_token, 3),
            node=node,
            tenant=tenant.name,
            model=tenant.model,
            session=session,
            finish_reason="stop" if answer.complete else "length",
            prompt_ids=prompt,
            response_ids=(*answer.ids, IM_END) if answer.complete else answer.ids,
        )
