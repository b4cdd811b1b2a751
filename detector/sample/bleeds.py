"""Plants bleeds into clean traffic and writes down the truth about each."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random

from detector.errors import UsageError
from detector.model import Role
from detector.sample.chatml import Message, messages_of, render
from detector.sample.language import Ids
from detector.sample.sharing import Sharing
from detector.sample.spots import Content, Spots
from detector.sample.tokenizer import IM_END
from detector.sample.traffic import SampleRequest, Traffic
from detector.sample.truth import FULL, RESPONSE_ROLE, BleedKind, TruthRow

NOISE_SHARE = 0.05
"""Share of a noisy run's tokens that differ: a sampled token went another way."""

MIN_VICTIM_TOKENS = 16
"""Answers shorter than this are left alone: there is no middle to bleed into."""

REPEAT_SPAN_S = 240.0
"""A repeated bleed hits all its victims within so many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BleedSpec:
    """What to plant. `role` is "system", "user" or "response"; `length` None is all of it."""

    kind: BleedKind
    role: str = RESPONSE_ROLE
    length: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """Traffic with bleeds, in order of arrival, and one truth row per bleed.

    `changed` are the ids of all requests that differ from the clean ones: victims, and later
    turns of their sessions, whose prompts re-send the answer with the bleed.
    """

    requests: tuple[SampleRequest, ...]
    truth: tuple[TruthRow, ...]
    changed: frozenset[str]


class Planter:
    """Plants bleeds one after the other; no request takes part in two, sources stay clean."""

    def __init__(self, rng: Random, traffic: Traffic, sharing: Sharing) -> None:
        self._rng = rng
        self._noise_ids = traffic.language.tokenizer.known_ids()
        self._spots = Spots(traffic.requests, sharing)
        self._clean = traffic.requests
        self._requests = {request.request_id: request for request in traffic.requests}
        self._truth: list[TruthRow] = []

    def result(self) -> Planted:
        """Everything planted so far."""
        changed = {
            request.request_id
            for request in self._clean
            if self._requests[request.request_id] is not request
        }
        return Planted(
            requests=tuple(self._requests.values()),
            truth=tuple(self._truth),
            changed=frozenset(changed),
        )

    def plant(self, spec: BleedSpec) -> None:
        """Plant one bleed at a random spot. Raises UsageError when the traffic has none for it."""
        for victim in self._rng.sample(self._clean, len(self._clean)):
            if not self._fits(victim, spec):
                continue
            content = self._spots.content(self._rng, victim, role=spec.role, length=spec.length)
            if content is not None:
                self._bleed(victim, content, spec.kind)
                return
        raise UsageError(
            f"no request can receive a {spec.kind} bleed of {spec.length or FULL} tokens",
            hint="generate more requests or plant fewer bleeds",
        )

    def plant_repeat(self, *, length: int, victims: int) -> None:
        """Bleed one chunk of a tenant's own system prompt into `victims` answers of others.

        All within `REPEAT_SPAN_S`. Raises UsageError when no tenant's neighbours are that many.
        """
        chunks = self._spots.system_chunks(self._rng, length)
        for chunk in self._rng.sample(chunks, len(chunks)):
            pairs = self._repeat_pairs(chunk, victims)
            if pairs:
                for victim, source in pairs:
                    content = chunk._replace(request=source)
                    self._bleed(victim, content, BleedKind.REPEAT)
                return
        raise UsageError(
            f"no system prompt can bleed into {victims} answers within {REPEAT_SPAN_S:.0f} s",
            hint="generate more requests",
        )

    def _repeat_pairs(
        self, chunk: Content, count: int
    ) -> list[tuple[SampleRequest, SampleRequest]]:
        """`count` victims of different sessions close in time, each with a source before it."""
        pairs: dict[str, tuple[SampleRequest, SampleRequest]] = {}
        spec = BleedSpec(kind=BleedKind.REPEAT)
        for victim in self._clean:
            if not self._fits(victim, spec) or victim.session in pairs:
                continue
            sources = [
                source
                for source in self._spots.earlier(victim)
                if source.tenant == chunk.request.tenant and self._spots.is_free(source)
            ]
            if sources:
                pairs[victim.session] = (victim, self._rng.choice(sources))
        ordered = list(pairs.values())
        starts = [
            start
            for start in range(len(ordered) - count + 1)
            if ordered[start + count - 1][0].ts - ordered[start][0].ts <= REPEAT_SPAN_S
        ]
        if not starts:
            return []
        start = self._rng.choice(starts)
        last = ordered[start][0].ts + REPEAT_SPAN_S
        close = [pair for pair in ordered[start:] if pair[0].ts <= last]
        return sorted(self._rng.sample(close, count), key=lambda pair: pair[0].ts)

    def _fits(self, victim: SampleRequest, spec: BleedSpec) -> bool:
        """Whether the victim is free and its answer long enough for the kind of bleed."""
        least = MIN_VICTIM_TOKENS
        if spec.kind is BleedKind.MID_OVERWRITE:
            least += spec.length or 0
        return self._spots.is_free(victim) and len(victim.response_ids) >= least

    def _bleed(self, victim: SampleRequest, content: Content, kind: BleedKind) -> None:
        """Change the victim's answer and the later prompts that re-send it; note the truth."""
        body, end = _without_end(victim.response_ids)
        is_noisy = kind is BleedKind.NOISY_MID
        run, noise = self._noisy(content.ids) if is_noisy else (content.ids, ())
        gone = len(run) if kind is BleedKind.MID_OVERWRITE else 0
        is_first = kind.is_whole or kind is BleedKind.START
        at = 0 if is_first else self._rng.randint(1, len(body) - gone - 1)
        bled = run if kind.is_whole else (*body[:at], *run, *body[at + gone :])
        self._replace(victim, body, bled, end=(IM_END,) if kind.is_whole else end)
        self._spots.take(victim, content)
        self._truth.append(self._row(victim, content, kind, at=at, noise=noise))

    def _replace(self, victim: SampleRequest, body: Ids, bled: Ids, *, end: Ids) -> None:
        self._requests[victim.request_id] = replace(
            victim, response_ids=(*bled, *end), finish_reason="stop" if end else "length"
        )
        for request in self._clean:
            if request.session == victim.session and request.ts > victim.ts:
                messages = (
                    Message(Role.ASSISTANT, bled) if message == (Role.ASSISTANT, body) else message
                    for message in messages_of(request.prompt_ids)
                )
                self._requests[request.request_id] = replace(request, prompt_ids=render(messages))

    def _noisy(self, run: Ids) -> tuple[Ids, tuple[int, ...]]:
        """Replace `NOISE_SHARE` of the run's tokens, rounded down, by other ones."""
        count = int(NOISE_SHARE * len(run))
        offsets = tuple(sorted(self._rng.sample(range(len(run)), count)))
        noisy = list(run)
        for offset in offsets:
            while noisy[offset] == run[offset]:
                noisy[offset] = self._rng.choice(self._noise_ids)
        return tuple(noisy), offsets

    def _row(
        self,
        victim: SampleRequest,
        content: Content,
        kind: BleedKind,
        *,
        at: int,
        noise: tuple[int, ...],
    ) -> TruthRow:
        source = content.request
        assert victim.node is not None
        return TruthRow(
            leak_id=len(self._truth),
            victim_request_id=victim.request_id,
            source_request_id=source.request_id,
            victim_tenant=victim.tenant,
            source_tenant=source.tenant,
            node=victim.node,
            dt_s=round(victim.ts - source.ts, 3),
            length=FULL if kind.is_whole else len(content.ids),
            run_tokens=len(content.ids),
            kind=kind,
            source_field=content.field,
            source_role=content.role,
            source_start=content.start,
            source_end=content.end,
            victim_start=at,
            victim_end=at + len(content.ids),
            noise_offsets=noise,
        )


def _without_end(response_ids: Ids) -> tuple[Ids, Ids]:
    """Split off the end marker, which an answer cut at the limit lacks."""
    if response_ids[-1:] == (IM_END,):
        return response_ids[:-1], response_ids[-1:]
    return response_ids, ()


def plant(rng: Random, traffic: Traffic, sharing: Sharing, specs: Iterable[BleedSpec]) -> Planted:
    """Plant one bleed per spec, each at a random spot; UsageError as in `Planter.plant`."""
    planter = Planter(rng, traffic, sharing)
    for spec in specs:
        planter.plant(spec)
    return planter.result()
