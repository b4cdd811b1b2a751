"""Routes that change incidents and silences, and erase."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from exporters.http import acts
from exporters.http.answers import SilenceList, told
from exporters.http.documented import answers
from exporters.http.fields import Erase, Id, NewSilence, Reason, SilenceIncident, caller
from exporters.http.parts import Parts
from exporters.incidents.model import Incident
from exporters.store.erasure import Erasure
from exporters.store.silences import Silence, Silenced, newest

MOST_SILENCES = 500


def change_routes(parts: Parts) -> APIRouter:
    """Return the routes of one incident."""
    router = APIRouter(tags=["changes"])
    at = "/v1/incidents/{incident_id}"

    @router.post(f"{at}/acknowledge", **answers(Incident, 404, 409, writes=True))
    def acknowledge(incident_id: Id, body: Reason, request: Request) -> Response:
        """Say that you take care of an incident."""
        by = caller(request).name
        return told(acts.acknowledge(parts, incident_id, by=by, reason=body.reason))

    @router.post(f"{at}/resolve", **answers(Incident, 404, 409, writes=True))
    def resolve(incident_id: Id, body: Reason, request: Request) -> Response:
        """End an incident; news opens it again."""
        by = caller(request).name
        return told(acts.resolve(parts, incident_id, by=by, reason=body.reason))

    @router.post(f"{at}/silence", **answers(Silence, 404, writes=True, status=201))
    def silence(incident_id: Id, body: SilenceIncident, request: Request) -> Response:
        """Hold back what is sent of one incident."""
        made = acts.silence(
            parts,
            Silenced(incidents=(incident_id,)),
            by=caller(request).name,
            comment=body.comment,
            minutes=body.minutes,
        )
        return told(made, status=201)

    @router.put(f"{at}/hold", **answers(None, 404, writes=True, status=204))
    def hold(incident_id: Id) -> Response:
        """Keep an incident, and the requests around it, from retention and erasure."""
        acts.hold(parts, incident_id, held=True)
        return Response(status_code=204)

    @router.delete(f"{at}/hold", **answers(None, 404, writes=True, status=204))
    def release(incident_id: Id) -> Response:
        """Let retention and erasure have an incident again."""
        acts.hold(parts, incident_id, held=False)
        return Response(status_code=204)

    return router


def silence_routes(parts: Parts) -> APIRouter:
    """Return the routes of silences and of erasure."""
    router = APIRouter(tags=["changes"])

    @router.get("/v1/silences", **answers(SilenceList))
    def silences() -> Response:
        """List silences past and future, the latest end first."""
        with parts.database.read() as connection:
            return told(SilenceList(newest(connection, limit=MOST_SILENCES)))

    @router.post("/v1/silences", **answers(Silence, 404, writes=True, status=201))
    def add(body: NewSilence, request: Request) -> Response:
        """Hold back what is sent of everything that matches."""
        about = Silenced(
            incidents=body.incidents,
            rules=body.rules,
            tenants=body.tenants,
            kv_pools=body.kv_pools,
        )
        by = caller(request).name
        made = acts.silence(parts, about, by=by, comment=body.comment, minutes=body.minutes)
        return told(made, status=201)

    @router.delete("/v1/silences/{silence_id}", **answers(None, 404, writes=True, status=204))
    def end(silence_id: Id) -> Response:
        """End a silence now."""
        acts.end_silence(parts, silence_id)
        return Response(status_code=204)

    @router.post("/v1/erasures", **answers(Erasure, writes=True))
    def erase(body: Erase) -> Response:
        """Erase what the store holds of a tenant, except what a hold keeps."""
        return told(acts.erase(parts, body.tenant))

    return router
