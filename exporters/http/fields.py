"""What callers may write into paths, queries and bodies: bounded, nothing a database refuses."""

from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from detector.finding import Confidence, Severity
from exporters.http.guard import CALLER
from exporters.http.tokens import Caller
from exporters.incidents.model import State
from exporters.store.verdicts import Verdict

MAX_NAME_CHARS = 512
"""As the records of requests bound names."""

NO_NUL = r"^[^\x00]*$"

MAX_TIME_MS = 2**53 - 1
"""Exact in JSON, and in a column of 64 bits."""

Id = Annotated[str, Path(min_length=1, max_length=160, pattern=r"^[0-9A-Za-z._-]+$")]

_Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS, pattern=NO_NUL)]
_Rule = Annotated[str, Field(pattern=r"^BW[0-9]{3}$")]
_Time = Annotated[int, Field(ge=-MAX_TIME_MS, le=MAX_TIME_MS, description="Unix milliseconds.")]
_Count = Annotated[int, Field(ge=0, le=MAX_TIME_MS)]
_States = Annotated[tuple[State, ...], Field(max_length=len(State))]


class Body(BaseModel):
    """Base of bodies and queries: a field that nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Page(Body):
    """Which page of a list."""

    limit: Annotated[int, Field(ge=1, le=500, description="Most rows of a page.")] = 50
    cursor: Annotated[str, Field(max_length=512)] | None = Field(
        None, description="`next` of the page before this one."
    )


class FindingQuery(Page):
    """Which findings; `tenant` is either side, times are those of detection."""

    rule: _Rule | None = None
    severity: Severity | None = None
    confidence: Confidence | None = None
    kv_pool: _Name | None = None
    tenant: _Name | None = None
    incident_id: _Name | None = None
    verdict: Verdict | None = None
    since_ms: _Time | None = None
    until_ms: _Time | None = None


class IncidentQuery(Page):
    """Which incidents; `state` may be given several times."""

    state: _States = ()
    severity: Severity | None = None
    kv_pool: _Name | None = None
    rule: _Rule | None = None
    tenant: _Name | None = None


class RadiusQuery(Body):
    """How a blast radius differs from that of the incident's own span of time."""

    since_ms: _Time | None = None
    until_ms: _Time | None = None
    longer_than: _Count | None = None
    engine: _Name | None = None
    contradicted: bool = False


class CoverageQuery(Body):
    """Which span of event time; the last hour by default."""

    since_ms: _Time | None = None
    until_ms: _Time | None = None


class JournalQuery(Page):
    """Attempts of which output, for which incident."""

    output: _Name | None = None
    incident_id: _Name | None = None


class ListChoice(Body):
    """The fields of the form above the list of incidents; what is empty asks for nothing."""

    state: Annotated[str, Field(max_length=MAX_NAME_CHARS, pattern=NO_NUL)] = "active"
    severity: Annotated[str, Field(max_length=MAX_NAME_CHARS, pattern=NO_NUL)] = ""
    rule: Annotated[str, Field(max_length=MAX_NAME_CHARS, pattern=NO_NUL)] = ""
    kv_pool: Annotated[str, Field(max_length=MAX_NAME_CHARS, pattern=NO_NUL)] = ""
    tenant: Annotated[str, Field(max_length=MAX_NAME_CHARS, pattern=NO_NUL)] = ""
    cursor: Annotated[str, Field(max_length=512)] | None = None


Text = Annotated[str, Field(max_length=500, pattern=NO_NUL)]
Names = Annotated[tuple[_Name, ...], Field(max_length=100)]
Minutes = Annotated[int, Field(ge=1, le=60 * 24 * 30, description="At most 30 days.")]


class Reason(Body):
    """Why somebody does it, in their words; kept in the log of the incident."""

    reason: Text = ""


class SilenceIncident(Body):
    """For how long nothing is sent of one incident, and why."""

    minutes: Minutes = 60
    comment: Text = ""


class NewSilence(SilenceIncident):
    """What a silence is about: every list that is not empty must match; names may hold `*`."""

    incidents: Names = ()
    rules: Names = ()
    tenants: Names = ()
    kv_pools: Names = ()


class VerdictBody(Body):
    """What somebody has decided; `none` takes an earlier verdict back."""

    verdict: Verdict


class TestAlert(Body):
    """Names of outputs that get a test alert; none: all of them."""

    to: Names = ()


class Erase(Body):
    """Whose rows are to be erased."""

    tenant: _Name


def caller(request: Request) -> Caller:
    """Return who asks, as the guard has found."""
    found: Caller = request.scope[CALLER]
    return found
