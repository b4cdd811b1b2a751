"""The same findings make the same incidents: in any order, told twice or late, in any batches.

What they must be is said again here, slowly: findings are together if a chain of neighbours
connects them.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.finding import Confidence, Finding, Severity
from exporters.incidents.model import Incident, State
from exporters.store import findings as finding_rows
from exporters.store import incidents as incident_rows
from exporters.store.database import Database
from exporters.store.recording import record_findings
from tests.store.made import SETTINGS, found

EXAMPLES = 40


class Group(NamedTuple):
    """What an incident is, whichever name it has."""

    members: frozenset[str]
    lead: str
    severity: Severity
    opened_at_ms: int
    last_seen_ms: int
    size: int
    pools: tuple[str, ...]
    rules: tuple[str, ...]
    tenants: tuple[str, ...]
    state: State


@st.composite
def told(draw: st.DrawFn) -> list[Finding]:
    """Draw what is told: versions of some findings, in any order, some twice."""
    versions = []
    for number in range(draw(st.integers(1, 7))):
        pool = draw(st.sampled_from("ab"))
        rules = draw(st.sampled_from([["BW001", "BW003"], ["BW101"], ["BW203"]]))
        source = f"tenant-{draw(st.integers(0, 2))}"
        request = draw(st.sampled_from(["r1", "r2", None]))
        at_s = draw(st.integers(0, 600))
        versions += [
            found(
                f"f{number}",
                at_s + draw(st.integers(-30, 30)),
                pool=pool,
                rule=draw(st.sampled_from(rules)),
                request=request,
                severity=draw(st.sampled_from([Severity.INFO, Severity.HIGH])),
                confidence=draw(st.sampled_from([Confidence.LOW, Confidence.HIGH])),
                source=source,
            )
            for _ in range(draw(st.integers(1, 2)))
        ]
    repeats = draw(st.lists(st.sampled_from(versions), max_size=4))
    return draw(st.permutations(versions + repeats))


def together(one: "Known", other: "Known") -> bool:
    """Return whether two findings are in one incident for what they say themselves."""
    apart = max(one.from_ms, other.from_ms) - min(one.until_ms, other.until_ms)
    if apart > SETTINGS.join_ms:
        return False
    same_pool = one.surest.kv_pool == other.surest.kv_pool
    same_request = one.surest.sink.request_id == other.surest.sink.request_id
    if one.counts and other.counts:
        return same_pool or same_request
    return same_request and (one.counts or other.counts)


class Known(NamedTuple):
    """All versions of one finding in one."""

    surest: Finding
    from_ms: int
    until_ms: int
    counts: bool


def known(findings: Iterable[Finding]) -> list[Known]:
    """Put versions together, by what severity and confidence mean."""
    versions: dict[str, list[Finding]] = {}
    for one in findings:
        versions.setdefault(one.id, []).append(one)
    result = []
    for of_one in versions.values():
        best = max(of_one, key=lambda one: (one.severity.rank, one.confidence is Confidence.HIGH))
        times = [one.observed_at_ms for one in of_one]
        counts = best.severity is Severity.HIGH
        result.append(Known(best, min(times), max(times), counts))
    return result


def expected(findings: Iterable[Finding]) -> set[frozenset[str]]:
    """Return which findings are together: components that hold one that counts."""
    rest = known(findings)
    groups = set()
    while rest:
        group, frontier = [], [rest.pop()]
        while frontier:
            one = frontier.pop()
            group.append(one)
            near = [other for other in rest if together(one, other)]
            frontier += near
            rest = [other for other in rest if other not in near]
        if any(one.counts for one in group):
            groups.add(frozenset(one.surest.id for one in group))
    return groups


def seen(database: Database, batches: Iterable[list[Finding]]) -> set[Group]:
    """Return the incidents after batches of findings."""
    for number, batch in enumerate(batches):
        with database.write() as connection:
            record_findings(connection, batch, SETTINGS, now_ms=number)
    with database.read() as connection:
        stored = incident_rows.newest(connection, limit=100)
        active = [one for one in stored if one.state is not State.MERGED]
        return {_group(one, finding_rows.findings_of(connection, one.id)) for one in active}


def _group(one: Incident, members: list[finding_rows.StoredFinding]) -> Group:
    return Group(
        members=frozenset(each.observed.finding.id for each in members),
        lead=one.lead.explanation,
        severity=one.severity,
        opened_at_ms=one.opened_at_ms,
        last_seen_ms=one.last_seen_ms,
        size=one.finding_count,
        pools=one.kv_pools,
        rules=one.rules,
        tenants=one.tenants,
        state=one.state,
    )


@pytest.fixture(scope="module")
def store(new_store: Callable[[], Database]) -> Callable[[], Database]:
    return new_store


@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data(), findings=told())
def test_any_order_and_any_batches_make_the_same_incidents(
    store: Callable[[], Database], data: st.DataObject, findings: list[Finding]
) -> None:
    at_once = seen(store(), [findings])
    assert {group.members for group in at_once} == expected(findings)
    assert all(len(group.members) == group.size for group in at_once)
    size = data.draw(st.integers(1, 4), label="findings in a batch")
    shuffled = data.draw(st.permutations(findings), label="in another order")
    batches = [shuffled[start : start + size] for start in range(0, len(shuffled), size)]
    assert seen(store(), batches) == at_once
