"""Finds spots for bleeds: content of another tenant that was on the victim's engine before it."""

import bisect
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from detector.model import EngineId, Kind, Role, Span
from detector.sample.chatml import content_spans
from detector.sample.language import Ids
from detector.sample.sharing import Sharing
from detector.sample.tokenizer import IM_END
from detector.sample.traffic import SampleRequest
from detector.sample.truth import RESPONSE_ROLE

MAX_AGE_S = 300.0
"""How long before the victim its source may have arrived: the default window."""

MIN_WHOLE = 24
"""Shortest whole answer or question that bleeds; a short one says the same for everybody."""


class Content(NamedTuple):
    """A range of one request's ids that may bleed; `role` is "response" or a message's role."""

    request: SampleRequest
    field: Kind
    role: str
    start: int
    end: int

    @property
    def ids(self) -> Ids:
        """The ids of the range."""
        whole = self.request.prompt_ids if self.field is Kind.PROMPT else self.request.response_ids
        return whole[self.start : self.end]


def last_question(request: SampleRequest) -> Span:
    """Return the span of the prompt's last user message."""
    return [span for span in content_spans(request.prompt_ids) if span.role is Role.USER][-1]


def contents(request: SampleRequest) -> Iterator[Content]:
    """Yield what is new with this request: system prompt, last question, answer less its end."""
    spans = list(content_spans(request.prompt_ids))
    if spans[0].role is Role.SYSTEM:
        yield Content(request, Kind.PROMPT, Role.SYSTEM, spans[0].start, spans[0].end)
    yield Content(request, Kind.PROMPT, Role.USER, spans[-1].start, spans[-1].end)
    end = len(request.response_ids) - (request.response_ids[-1:] == (IM_END,))
    yield Content(request, Kind.RESPONSE, RESPONSE_ROLE, 0, end)


class Spots:
    """Looks for content in one list of requests, which must be in order of arrival.

    Content is handed out once: neither it nor the requests around it serve two bleeds.
    """

    def __init__(self, requests: Sequence[SampleRequest], sharing: Sharing) -> None:
        self._sharing = sharing
        self._taken_sessions: set[str] = set()
        self._taken_sources: set[tuple[str, str]] = set()
        self._by_node: dict[EngineId, list[SampleRequest]] = {}
        for request in requests:
            if request.node is not None:
                self._by_node.setdefault(request.node, []).append(request)

    def earlier(self, victim: SampleRequest) -> list[SampleRequest]:
        """Return other tenants' requests on the victim's engine, at most `MAX_AGE_S` before it."""
        if victim.node is None:
            return []
        there = self._by_node[victim.node]
        low = bisect.bisect_left(there, victim.ts - MAX_AGE_S, key=lambda request: request.ts)
        high = bisect.bisect_left(there, victim.ts, key=lambda request: request.ts)
        return [request for request in there[low:high] if request.tenant != victim.tenant]

    def is_free(self, request: SampleRequest) -> bool:
        """Whether the request's session has no part in a bleed yet."""
        return request.session not in self._taken_sessions

    def content(
        self, rng: Random, victim: SampleRequest, *, role: str, length: int | None
    ) -> Content | None:
        """Content that nobody but the source's tenant has, or None if there is none by chance.

        `length` None asks for the whole answer or question.
        """
        asked = question_ids(victim)
        candidates = self.earlier(victim)
        rng.shuffle(candidates)
        for source in candidates:
            if not self.is_free(source) or question_ids(source) == asked:
                continue
            if role == RESPONSE_ROLE and source.ts_end > victim.ts_end:
                continue  # not all of the answer existed while the victim's was written
            for content in contents(source):
                if content.role != role or self._source_key(content) in self._taken_sources:
                    continue
                found = self._piece(rng, content, length)
                if found is not None:
                    return found
        return None

    def take(self, victim: SampleRequest, content: Content) -> None:
        """Keep both requests, and the content, out of all later bleeds."""
        self._taken_sessions |= {victim.session, content.request.session}
        self._taken_sources.add(self._source_key(content))

    def system_chunks(self, rng: Random, length: int) -> list[Content]:
        """Return a random unshared chunk of every tenant's own system prompt."""
        chunks: dict[str, Content] = {}
        for requests in self._by_node.values():
            for request in requests:
                first = next(contents(request))
                if first.role != Role.SYSTEM or request.tenant in chunks:
                    continue
                chunk = self._piece(rng, first, length)
                if chunk is not None and self._source_key(chunk) not in self._taken_sources:
                    chunks[request.tenant] = chunk
        return list(chunks.values())

    def _piece(self, rng: Random, content: Content, length: int | None) -> Content | None:
        wanted = content.end - content.start if length is None else length
        if length is None and wanted < MIN_WHOLE:
            return None
        starts = self._sharing.unshared_starts(content.request.tenant, content.ids, wanted)
        if not starts:
            return None
        start = content.start + rng.choice(starts)
        return content._replace(start=start, end=start + wanted)

    @staticmethod
    def _source_key(content: Content) -> tuple[str, str]:
        """Name the source: one per tenant for its system prompt, else one per request."""
        owner = content.request.tenant if content.role == Role.SYSTEM else ""
        return (owner or content.request.request_id, content.role)


def question_ids(request: SampleRequest) -> Ids:
    """Return the last user message."""
    span = last_question(request)
    return request.prompt_ids[span.start : span.end]
