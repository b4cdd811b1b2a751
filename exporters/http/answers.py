"""What the API answers with, and how: one definition for the bytes and for their description."""

import msgspec
from starlette.responses import Response

from exporters.incidents.model import Incident
from exporters.sending.overview import OutputState
from exporters.store.coverage import PoolCoverage
from exporters.store.digests import FindingDigests
from exporters.store.erasure import Erasure
from exporters.store.finding_list import ListedFinding
from exporters.store.incidents import LoggedChange
from exporters.store.journal import Attempt
from exporters.store.look_backs import StoredLookBack
from exporters.store.silences import Silence
from exporters.store.verdicts import Verdict

JSON = "application/json"


class FindingPage(msgspec.Struct):
    """Findings, the last detected first; `next` is the cursor of the next page, null at the end."""

    findings: list[ListedFinding]
    next: str | None = None


class AllowListPage(msgspec.Struct):
    """Digests of findings judged to be none; `next` is the cursor of the next page.

    A line of an allow-list is one of the entries.
    """

    entries: list[FindingDigests]
    next: str | None = None


class IncidentPage(msgspec.Struct):
    """Incidents, the last made first; `next` is the cursor of the next page, null at the end."""

    incidents: list[Incident]
    next: str | None = None


class IncidentDetail(msgspec.Struct):
    """An incident with its changes, its gravest findings first, and what was looked back for.

    `findings` holds the first hundred; `/v1/findings?incident_id=` lists them all.
    """

    incident: Incident
    is_held: bool
    changes: list[LoggedChange]
    findings: list[ListedFinding]
    look_backs: list[StoredLookBack]


class TenantRequests(msgspec.Struct):
    """How many requests of one tenant are in a blast radius."""

    tenant: str
    requests: int


class RadiusScope(msgspec.Struct):
    """One pool and span of event time that a blast radius counts in, both ends included."""

    kv_pool: str
    from_ms: int
    until_ms: int


class BlastRadiusAnswer(msgspec.Struct):
    """Requests by tenant, those with most requests first, over all `scopes`."""

    incident_id: str
    scopes: list[RadiusScope]
    requests: int
    tenants: list[TenantRequests]


class RuleAnswer(msgspec.Struct):
    """One rule: what it is, how often it fired, and what people decided about its findings."""

    id: str
    title: str
    severity: str
    maturity: str
    findings: int
    confirmed: int
    false_positives: int
    precision: float | None


class RuleList(msgspec.Struct):
    """Every rule. `precision` is the share of judged findings that are confirmed."""

    rules: list[RuleAnswer]
    precision: float | None


class CoverageAnswer(msgspec.Struct):
    """What was seen of each pool's requests that began in a span of time."""

    since_ms: int
    until_ms: int
    pools: list[PoolCoverage]


class OutputList(msgspec.Struct):
    """Every output and how it stands."""

    outputs: list[OutputState]


class JournalPage(msgspec.Struct):
    """Attempts to send, the newest first; `next` is the cursor of the next page."""

    attempts: list[Attempt]
    next: str | None = None


class SilenceList(msgspec.Struct):
    """Silences past and future, the latest end first."""

    silences: list[Silence]


class VerdictAnswer(msgspec.Struct):
    """The verdict on a finding as it is now."""

    finding_id: str
    verdict: Verdict
    by: str


class Probe(msgspec.Struct):
    """Whether all is well, and why not."""

    ok: bool
    reasons: list[str]


SHOWN = (
    FindingPage,
    ListedFinding,
    FindingDigests,
    AllowListPage,
    IncidentPage,
    IncidentDetail,
    BlastRadiusAnswer,
    RuleList,
    CoverageAnswer,
    OutputList,
    JournalPage,
    SilenceList,
    VerdictAnswer,
    Erasure,
    Silence,
    Incident,
    Probe,
)
"""Whatever a route answers with."""


def told(answer: msgspec.Struct, *, status: int = 200) -> Response:
    """Return an answer as JSON."""
    return Response(msgspec.json.encode(answer), status_code=status, media_type=JSON)
