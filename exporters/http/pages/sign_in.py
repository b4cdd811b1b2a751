"""Signing in with a token, and out: the session is a signed cookie that no other site can use."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from exporters.http.access import COOKIE, Access
from exporters.http.pages.forms import FormToken, back_to, checked
from exporters.http.pages.views import templates
from exporters.http.parts import Parts
from exporters.http.problems import ProblemError
from exporters.http.sessions import SESSION_MS

Next = Annotated[str, Query(max_length=2048)]


def sign_in_routes(parts: Parts, access: Access) -> APIRouter:
    """Return the routes."""
    router = APIRouter(include_in_schema=False)

    @router.get("/login")
    def form(next: Next = "/incidents") -> Response:  # noqa: A002 - the name in the address
        return HTMLResponse(templates().render("login.html", next=next, failed=False))

    @router.post("/login")
    def sign_in(
        request: Request,
        token: Annotated[str, Form(max_length=512)],
        next: Annotated[str, Form(max_length=2048)] = "/incidents",  # noqa: A002
    ) -> Response:
        if request.headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
            detail = "a page of another site may not sign you in"
            raise ProblemError(HTTPStatus.FORBIDDEN, "cross-site", detail)
        who = access.by_token(token.strip())
        if who is None:
            page = templates().render("login.html", next=next, failed=True)
            return HTMLResponse(page, status_code=HTTPStatus.UNAUTHORIZED)
        answer = back_to(next)
        answer.set_cookie(
            COOKIE,
            access.sessions.cookie(who, now_ms=parts.now_ms()),
            max_age=SESSION_MS // 1000,
            httponly=True,
            secure=True,
            samesite="lax",
        )
        return answer

    @router.post("/logout")
    def sign_out(request: Request, form_token: FormToken) -> Response:
        checked(access, request, form_token)
        answer = back_to("/login")
        answer.delete_cookie(COOKIE, httponly=True, secure=True, samesite="lax")
        return answer

    return router
