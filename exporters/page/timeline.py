"""The picture of a pool's time around an incident: requests, sources, responses, reports."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from detector.finding import Finding

WIDTH: Final = 1000
BUCKETS: Final = 100
"""Bars of the histogram."""

HEIGHT: Final = 60.0
"""Of the highest bar."""

MARGIN: Final = 0.05
"""Share of the span that is shown before and after."""

NARROWEST: Final = 4.0

MOST_MARKS: Final = 200
"""Of one lane: more are one line anyway."""


class Span(NamedTuple):
    """A stretch of event time, both ends included; milliseconds."""

    from_ms: int
    until_ms: int

    @property
    def bucket_ms(self) -> int:
        """The width of a bar."""
        return max(1, -(-(self.until_ms - self.from_ms + 1) // BUCKETS))


class Mark(NamedTuple):
    """A stretch on a lane."""

    at: float
    width: float
    says: str


class Lane(NamedTuple):
    """What happened of one kind."""

    name: str
    kind: str
    marks: tuple[Mark, ...]


class Bar(NamedTuple):
    """Requests that began in one bucket."""

    at: float
    height: float
    says: str


class Timeline(NamedTuple):
    """The picture: bars on top, lanes below."""

    span: Span
    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]
    most: int
    says: str


def shown_span(findings: Sequence[Finding]) -> Span:
    """Return the time to show: from the first source to the last response or report."""
    from_ms = min(min(one.source.started_at_ms, one.sink.started_at_ms) for one in findings)
    until_ms = max(max(one.sink.ended_at_ms, one.observed_at_ms) for one in findings)
    margin_ms = max(1000, int((until_ms - from_ms) * MARGIN))
    return Span(from_ms - margin_ms, until_ms + margin_ms)


def timeline(findings: Sequence[Finding], span: Span, requests: dict[int, int]) -> Timeline:
    """Return the picture; `requests` counts those that began in each bucket of the span."""
    about_requests = [one for one in findings if one.sink.request_id]
    content = [one for one in about_requests if one.is_content]
    contradicted = [one for one in about_requests if not one.is_content]
    engines = [one for one in findings if not one.sink.request_id]
    lanes = (
        Lane("sources", "source", _marks(span, content, side="source")),
        Lane("responses", "sink", _marks(span, content, side="sink")),
        Lane("contradictions", "sink", _marks(span, contradicted, side="sink")),
        Lane("engine reports", "report", _marks(span, engines, side="sink")),
    )
    return Timeline(
        span=span,
        lanes=tuple(lane for lane in lanes if lane.marks),
        bars=_bars(requests),
        most=max(requests.values(), default=0),
        says=f"{len(findings)} findings and {sum(requests.values())} requests over "
        f"{(span.until_ms - span.from_ms) / 1000:,.0f} seconds",
    )


def _marks(span: Span, findings: Sequence[Finding], *, side: str) -> tuple[Mark, ...]:
    scale = WIDTH / (span.until_ms - span.from_ms)
    marks = []
    for one in findings[:MOST_MARKS]:
        party = one.source if side == "source" else one.sink
        at = (party.started_at_ms - span.from_ms) * scale
        width = max((party.ended_at_ms - party.started_at_ms) * scale, NARROWEST)
        who = f"{party.tenant}, request {party.request_id}" if party.request_id else one.engine
        marks.append(Mark(at, min(width, WIDTH - at), f"{one.rule}: {who}"))
    return tuple(marks)


def _bars(requests: dict[int, int]) -> tuple[Bar, ...]:
    most = max(requests.values(), default=1)
    width = WIDTH / BUCKETS
    return tuple(
        Bar(bucket * width, HEIGHT * count / most, f"{count} requests")
        for bucket, count in sorted(requests.items())
        if 0 <= bucket < BUCKETS
    )
