"""Pages to read: incidents, one of them, findings, rules, runbooks, and a blast radius to save."""

import csv
import io
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from detector.rules.catalog import RULES
from detector.rules.runbook import Runbook, runbooks
from exporters.http.access import Access
from exporters.http.answers import IncidentDetail
from exporters.http.cursors import place
from exporters.http.fields import Id, ListChoice
from exporters.http.pages.choice import STATES, address, is_unfiltered, wanted
from exporters.http.pages.views import Views
from exporters.http.parts import Parts
from exporters.http.problems import no_such
from exporters.http.reads import radius, whole_incident
from exporters.http.routes.about import rule_list
from exporters.http.routes.incidents import page as page_of
from exporters.incidents.model import Incident
from exporters.page.timeline import Timeline, shown_span, timeline
from exporters.store.activity import requests_over_time
from exporters.store.blast_radius import Asked
from exporters.store.finding_list import listed_finding
from exporters.store.incident_list import IncidentPlace, list_incidents, pools_with_incidents
from exporters.store.look_backs import look_backs_of
from exporters.store.verdicts import judged_by_rule

ROWS = 50

DETAILED = 8
"""Findings that are shown with their evidence; the others have a page of their own."""

POOLS = 200
"""Names of pools that the filter offers."""


def page_routes(parts: Parts, access: Access) -> APIRouter:
    """Return the routes of all pages to read."""
    router = APIRouter(include_in_schema=False)
    _lists(router, parts, Views(access))
    _details(router, parts, Views(access))
    _books(router, Views(access))
    return router


def _lists(router: APIRouter, parts: Parts, views: Views) -> None:
    @router.get("/")
    async def home() -> Response:
        return RedirectResponse("/incidents", status_code=303)

    @router.get("/incidents")
    def incidents(request: Request, chosen: Annotated[ListChoice, Query()]) -> Response:
        asked, after = wanted(chosen), place(chosen.cursor, IncidentPlace)
        with parts.database.read() as connection:
            found = list_incidents(connection, asked, limit=ROWS + 1, after=after)
            pools = pools_with_incidents(connection, limit=POOLS)
        page = page_of(found, ROWS)
        return views.page(
            request,
            "incidents.html",
            incidents=page.incidents,
            next=address(chosen, page.next) if page.next else None,
            chosen=chosen,
            is_unfiltered=is_unfiltered(chosen),
            states=STATES,
            rules=RULES,
            pools=pools,
            not_ready=parts.not_ready(),
        )

    @router.get("/rules")
    def rules(request: Request) -> Response:
        with parts.database.read() as connection:
            judged = judged_by_rule(connection)
        return views.page(request, "rules.html", list=rule_list(judged))


def _details(router: APIRouter, parts: Parts, views: Views) -> None:
    @router.get("/incidents/{incident_id}")
    def incident(incident_id: Id, request: Request) -> Response:
        found = whole_incident(parts, incident_id)
        one = found.incident
        return views.page(
            request,
            "incident.html",
            incident=one,
            is_held=found.is_held,
            changes=found.changes,
            findings=found.findings,
            detailed=found.findings[:DETAILED],
            look_backs={back.finding_id: back for back in found.look_backs},
            timeline=_timeline(parts, found),
            radius=radius(parts, incident_id, Asked()),
            books=_books_of(one),
            rules=RULES,
        )

    @router.get("/incidents/{incident_id}/blast-radius.csv")
    def saved(incident_id: Id) -> Response:
        counted = radius(parts, incident_id, Asked())
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(["tenant", "requests"])
        writer.writerows((_cell(one.tenant), one.requests) for one in counted.tenants)
        named = {"Content-Disposition": f'attachment; filename="blast-radius-{incident_id}.csv"'}
        return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=named)

    @router.get("/findings/{finding_id}")
    def finding(finding_id: Id, request: Request) -> Response:
        with parts.database.read() as connection:
            found = listed_finding(connection, finding_id)
            backs = look_backs_of(connection, [finding_id])
        if found is None:
            raise no_such("finding")
        return views.page(request, "finding.html", listed=found, look_backs=backs)


def _books(router: APIRouter, views: Views) -> None:
    @router.get("/runbooks")
    def all_books(request: Request) -> Response:
        return views.page(request, "runbooks.html", books=runbooks())

    @router.get("/runbooks/{name}")
    def one_book(name: Id, request: Request) -> Response:
        book = runbooks().get(name)
        if book is None:
            raise no_such("runbook")
        return views.page(request, "runbook.html", name=name, book=book, rules=RULES)


def _books_of(incident: Incident) -> list[tuple[str, Runbook]]:
    """Return the runbooks of an incident's rules, that of its gravest finding first."""
    books = runbooks()
    in_order = dict.fromkeys((incident.lead.rule, *incident.rules))
    return [(name, books[name]) for name in in_order if name in books]


def _timeline(parts: Parts, found: IncidentDetail) -> Timeline | None:
    """Return the picture of the pool of the gravest finding."""
    kv_pool = found.incident.kv_pool
    mine = [one.finding for one in found.findings if one.finding.kv_pool == kv_pool]
    if not mine:
        return None
    span = shown_span(mine)
    with parts.database.read() as connection:
        requests = requests_over_time(
            connection,
            kv_pool,
            from_ms=span.from_ms,
            until_ms=span.until_ms,
            bucket_ms=span.bucket_ms,
        )
    return timeline(mine, span, requests)


def _cell(text: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "\r"} else text
