"""Routes of findings: lists, one of them, and verdicts."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from exporters.http import acts
from exporters.http.answers import FindingPage, VerdictAnswer, told
from exporters.http.cursors import cursor as written
from exporters.http.cursors import place
from exporters.http.documented import answers
from exporters.http.fields import FindingQuery, Id, VerdictBody, caller
from exporters.http.in_place import in_place
from exporters.http.parts import Parts
from exporters.http.problems import no_such
from exporters.store.finding_list import (
    FindingFilter,
    FindingPlace,
    ListedFinding,
    list_findings,
    listed_finding,
)


def finding_routes(parts: Parts) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["findings"])

    @router.get("/v1/findings", **answers(FindingPage))
    @in_place(parts)
    def find(asked: Annotated[FindingQuery, Query()]) -> Response:
        """List findings, the last detected first; `tenant` is either side."""
        wanted = FindingFilter(**asked.model_dump(exclude={"limit", "cursor"}))
        after = place(asked.cursor, FindingPlace)
        with parts.database.read() as connection:
            found = list_findings(connection, wanted, limit=asked.limit + 1, after=after)
        return told(_page(found, asked.limit))

    @router.get("/v1/findings/{finding_id}", **answers(ListedFinding, 404))
    @in_place(parts)
    def show(finding_id: Id) -> Response:
        """Show one finding."""
        with parts.database.read() as connection:
            found = listed_finding(connection, finding_id)
        if found is None:
            raise no_such("finding")
        return told(found)

    @router.put("/v1/findings/{finding_id}/verdict", **answers(VerdictAnswer, 404, writes=True))
    def judge(finding_id: Id, body: VerdictBody, request: Request) -> Response:
        """Say whether a finding is a bleed."""
        by = caller(request).name
        acts.give_verdict(parts, finding_id, body.verdict, by=by)
        return told(VerdictAnswer(finding_id, body.verdict, by))

    return router


def _page(found: list[ListedFinding], limit: int) -> FindingPage:
    if len(found) <= limit:
        return FindingPage(found)
    last = found[limit - 1].finding
    return FindingPage(found[:limit], written(FindingPlace(last.detected_at_ms, last.id)))
