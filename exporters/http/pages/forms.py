"""What the forms of pages do; each must bring the token of the person it was made for."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from exporters.http import acts
from exporters.http.access import Access
from exporters.http.fields import NO_NUL, Id, caller
from exporters.http.parts import Parts
from exporters.http.problems import ProblemError
from exporters.http.tokens import Caller
from exporters.store.silences import Silenced
from exporters.store.verdicts import Verdict

FormToken = Annotated[str, Form(max_length=128)]
FormText = Annotated[str, Form(max_length=500, pattern=NO_NUL)]
FormMinutes = Annotated[int, Form(ge=1, le=60 * 24 * 30)]


def form_routes(parts: Parts, access: Access) -> APIRouter:
    """Return the routes of all forms but those to sign in and out."""
    router = APIRouter(include_in_schema=False)
    _incident_forms(router, parts, access)
    _finding_forms(router, parts, access)
    return router


def checked(access: Access, request: Request, form_token: str) -> Caller:
    """Return who sends a form; raises ProblemError for one that was made for somebody else."""
    who = caller(request)
    if not access.sessions.is_form_token(form_token, who):
        detail = "this form was made for another session: go back, load the page again, repeat"
        raise ProblemError(HTTPStatus.FORBIDDEN, "form", detail)
    return who


def back_to(address: str) -> Response:
    """Send a browser to a page of ours."""
    inside = address.startswith("/") and not address.startswith(("//", "/\\"))
    return RedirectResponse(address if inside else "/incidents", status_code=HTTPStatus.SEE_OTHER)


def _incident_forms(router: APIRouter, parts: Parts, access: Access) -> None:
    at = "/incidents/{incident_id}"

    @router.post(f"{at}/acknowledge")
    def acknowledge(
        incident_id: Id, request: Request, form_token: FormToken, reason: FormText = ""
    ) -> Response:
        by = checked(access, request, form_token).name
        acts.acknowledge(parts, incident_id, by=by, reason=reason)
        return back_to(f"/incidents/{incident_id}")

    @router.post(f"{at}/resolve")
    def resolve(
        incident_id: Id, request: Request, form_token: FormToken, reason: FormText = ""
    ) -> Response:
        by = checked(access, request, form_token).name
        acts.resolve(parts, incident_id, by=by, reason=reason)
        return back_to(f"/incidents/{incident_id}")

    @router.post(f"{at}/silence")
    def silence(
        incident_id: Id, request: Request, form_token: FormToken, minutes: FormMinutes
    ) -> Response:
        by = checked(access, request, form_token).name
        about = Silenced(incidents=(incident_id,))
        acts.silence(parts, about, by=by, comment="from its page", minutes=minutes)
        return back_to(f"/incidents/{incident_id}")

    @router.post(f"{at}/hold")
    def hold(incident_id: Id, request: Request, form_token: FormToken) -> Response:
        checked(access, request, form_token)
        acts.hold(parts, incident_id, held=True)
        return back_to(f"/incidents/{incident_id}")

    @router.post(f"{at}/release")
    def release(incident_id: Id, request: Request, form_token: FormToken) -> Response:
        checked(access, request, form_token)
        acts.hold(parts, incident_id, held=False)
        return back_to(f"/incidents/{incident_id}")


def _finding_forms(router: APIRouter, parts: Parts, access: Access) -> None:
    @router.post("/findings/{finding_id}/verdict")
    def judge(
        finding_id: Id,
        request: Request,
        form_token: FormToken,
        verdict: Annotated[Verdict, Form()],
        back: FormText = "",
    ) -> Response:
        by = checked(access, request, form_token).name
        acts.give_verdict(parts, finding_id, verdict, by=by)
        return back_to(back or f"/findings/{finding_id}")
