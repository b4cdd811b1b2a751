"""Routes that read incidents: lists, one of them, and its blast radius."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from exporters.http.answers import BlastRadiusAnswer, IncidentDetail, IncidentPage, told
from exporters.http.cursors import cursor as written
from exporters.http.cursors import place
from exporters.http.documented import answers
from exporters.http.fields import Id, IncidentQuery, RadiusQuery
from exporters.http.in_place import in_place
from exporters.http.parts import Parts
from exporters.http.reads import radius, whole_incident
from exporters.incidents.model import Incident
from exporters.store.blast_radius import Asked
from exporters.store.incident_list import IncidentFilter, IncidentPlace, list_incidents


def incident_routes(parts: Parts) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["incidents"])

    @router.get("/v1/incidents", **answers(IncidentPage))
    @in_place(parts)
    def find(asked: Annotated[IncidentQuery, Query()]) -> Response:
        """List incidents, the last made first."""
        wanted = IncidentFilter(
            states=asked.state,
            severity=asked.severity,
            kv_pool=asked.kv_pool,
            rule=asked.rule,
            tenant=asked.tenant,
        )
        after = place(asked.cursor, IncidentPlace)
        with parts.database.read() as connection:
            found = list_incidents(connection, wanted, limit=asked.limit + 1, after=after)
        return told(page(found, asked.limit))

    @router.get("/v1/incidents/{incident_id}", **answers(IncidentDetail, 404))
    @in_place(parts)
    def show(incident_id: Id) -> Response:
        """Show one incident with its changes and gravest findings."""
        return told(whole_incident(parts, incident_id))

    @router.get("/v1/incidents/{incident_id}/blast-radius", **answers(BlastRadiusAnswer, 404))
    def blast_radius(incident_id: Id, asked: Annotated[RadiusQuery, Query()]) -> Response:
        """Count the requests that ran in the incident's pools around it, by tenant."""
        return told(radius(parts, incident_id, Asked(**asked.model_dump())))

    return router


def page(found: list[Incident], limit: int) -> IncidentPage:
    """Return a page of one row more than it may show."""
    if len(found) <= limit:
        return IncidentPage(found)
    last = found[limit - 1]
    return IncidentPage(found[:limit], written(IncidentPlace(last.created_at_ms, last.id)))
