"""Which incident a finding belongs to: by KV pool and event time, and by request.

Findings of one pool are together if they are no further apart than `join_ms`, so the findings of a
pool make spans of event time that never touch, and each span belongs to one incident. Findings
about the same request are together too, in whatever pools. Both relations only look at what the
findings say, so any order of arrival gives the same groups.
"""

from collections.abc import Iterable
from typing import NamedTuple

from exporters.incidents.model import Incident, Observed


class Span(NamedTuple):
    """A stretch of event time in one pool that belongs to one incident; both ends count."""

    kv_pool: str
    from_ms: int
    until_ms: int
    incident_id: str


class Neighbour(NamedTuple):
    """A finding about the same request, near in time. One that `counts` makes incidents."""

    finding_id: str
    incident_id: str | None
    counts: bool


class Place(NamedTuple):
    """Where a finding belongs.

    `incident_ids` are those it touches, which become one; none: it makes one, if it counts.
    `spans` are replaced by one that covers them and the finding. `adopted` are weak findings that
    become part of its incident.
    """

    incident_ids: frozenset[str]
    spans: tuple[Span, ...]
    adopted: tuple[str, ...]


def place(
    observed: Observed,
    *,
    spans: Iterable[Span],
    neighbours: Iterable[Neighbour],
    current: str | None,
) -> Place:
    """Say where a finding belongs.

    `spans` are those of its pool, and `neighbours` the findings about its request, that are within
    `join_ms` of it; `current` is the incident that it is in.
    """
    if not observed.counts:
        linked = {near.incident_id for near in neighbours if near.counts}
        return Place(_known({*linked, current}), (), ())
    touched, near = tuple(spans), tuple(neighbours)
    incident_ids = {
        *(span.incident_id for span in touched),
        *(one.incident_id for one in near),
        current,
    }
    adopted = tuple(one.finding_id for one in near if one.incident_id is None)
    return Place(_known(incident_ids), touched, adopted)


def covering(observed: Observed, spans: Iterable[Span], incident_id: str) -> Span:
    """Return the span that a finding and the spans it touches become."""
    touched = tuple(spans)
    return Span(
        observed.finding.kv_pool,
        min([observed.from_ms, *(span.from_ms for span in touched)]),
        max([observed.until_ms, *(span.until_ms for span in touched)]),
        incident_id,
    )


def survivor(incidents: Iterable[Incident]) -> Incident:
    """Return the one that the others become part of: the one made first, which others know."""
    return min(incidents, key=lambda one: (one.created_at_ms, one.id))


def _known(incident_ids: Iterable[str | None]) -> frozenset[str]:
    return frozenset(one for one in incident_ids if one is not None)
