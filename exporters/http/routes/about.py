"""Routes about the monitor: rules and their precision, coverage, outputs, a test alert."""

from http import HTTPStatus
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Query
from starlette.responses import Response

from detector.errors import SettingsError
from detector.rules.catalog import RULES
from exporters.http.answers import (
    CoverageAnswer,
    JournalPage,
    OutputList,
    RuleAnswer,
    RuleList,
    told,
)
from exporters.http.cursors import cursor as written
from exporters.http.cursors import place
from exporters.http.documented import answers
from exporters.http.fields import CoverageQuery, JournalQuery, TestAlert
from exporters.http.parts import Parts
from exporters.http.problems import ProblemError, Wrong, no_such
from exporters.sending.overview import overview
from exporters.store import journal
from exporters.store.coverage import coverage
from exporters.store.verdicts import Judged, judged_by_rule

COVERAGE_MS = 3_600_000
"""The span that is told of if nobody says which: an hour."""

LONGEST_COVERAGE_MS = 7 * 86_400_000
"""A longer span would read too many rows for one answer."""


def about_routes(parts: Parts) -> APIRouter:
    """Return the routes about rules and coverage."""
    router = APIRouter(tags=["about"])

    @router.get("/v1/rules", **answers(RuleList))
    def rules() -> Response:
        """List every rule: how often it fired, and how often it was right."""
        with parts.database.read() as connection:
            judged = judged_by_rule(connection)
        return told(rule_list(judged))

    @router.get("/v1/coverage", **answers(CoverageAnswer))
    def covered(asked: Annotated[CoverageQuery, Query()]) -> Response:
        """Count what was seen of the requests of each pool, in the last hour by default."""
        until = parts.now_ms() if asked.until_ms is None else asked.until_ms
        since = until - COVERAGE_MS if asked.since_ms is None else asked.since_ms
        if not since <= until <= since + LONGEST_COVERAGE_MS:
            wrong = Wrong("query.since_ms", "must be at most 7 days before until_ms")
            raise ProblemError(
                HTTPStatus.BAD_REQUEST, "span", "choose a shorter span", errors=(wrong,)
            )
        with parts.database.read() as connection:
            return told(
                CoverageAnswer(since, until, coverage(connection, since_ms=since, until_ms=until))
            )

    return router


class LinePlace(NamedTuple):
    """Where a page of attempts ended."""

    seq: int


def output_routes(parts: Parts) -> APIRouter:
    """Return the routes about outputs."""
    router = APIRouter(tags=["outputs"])

    @router.get("/v1/outputs", **answers(OutputList))
    def outputs() -> Response:
        """List the outputs: what waits, what was delivered, how the last sending went."""
        with parts.database.read() as connection:
            return told(OutputList(overview(connection, parts.outputs)))

    @router.get("/v1/outputs/journal", **answers(JournalPage))
    def lines(asked: Annotated[JournalQuery, Query()]) -> Response:
        """List attempts to send, the newest first."""
        after = place(asked.cursor, LinePlace)
        with parts.database.read() as connection:
            found = journal.newest(
                connection,
                limit=asked.limit + 1,
                output=asked.output,
                incident_id=asked.incident_id,
                before_seq=after.seq if after else None,
            )
        ended = LinePlace(found[asked.limit - 1].seq) if len(found) > asked.limit else None
        return told(JournalPage(found[: asked.limit], ended and written(ended)))

    @router.post("/v1/test-alert", **answers(JournalPage, 404, 409, writes=True))
    def test_alert(body: TestAlert) -> Response:
        """Send a test alert now, and say how that went."""
        known = {output.name for output in parts.outputs}
        if not known.issuperset(body.to):
            raise no_such("output")
        try:
            return told(JournalPage(parts.send_test(body.to) if known else []))
        except SettingsError as error:
            raise ProblemError(HTTPStatus.CONFLICT, "settings", f"{error.where}: {error}") from None

    return router


def rule_list(judged: dict[str, Judged]) -> RuleList:
    """Return every rule with what was decided about its findings."""
    of_rule = {name: judged.get(name, Judged()) for name in RULES}
    in_all = Judged(
        confirmed=sum(one.confirmed for one in judged.values()),
        false_positives=sum(one.false_positives for one in judged.values()),
    )
    rules = [
        RuleAnswer(
            id=name,
            title=RULES[name].title,
            severity=RULES[name].severity.value,
            maturity=RULES[name].maturity,
            findings=one.findings,
            confirmed=one.confirmed,
            false_positives=one.false_positives,
            precision=one.precision,
        )
        for name, one in of_rule.items()
    ]
    return RuleList(rules, in_all.precision)
