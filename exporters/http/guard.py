"""Stands before every route: who may pass, how large a body may be, and what answers must say.

Nothing is let through that is not named here: paths without a sign-in are few and hold nothing of
anybody, reading needs somebody known, and whatever is not reading needs somebody who may write.
"""

from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from detector.addresses import is_loopback
from exporters.http.access import COOKIE, NOBODY, Access
from exporters.http.problems import Problem, answer, problem
from exporters.http.tokens import Caller

CALLER: Final = "bleedwatch.caller"
"""Where the scope of a request says who asks."""

MAX_BODY_BYTES: Final = 64 * 1024
"""Largest body: the largest that anybody sends is a form of a few hundred characters."""

LOGIN: Final = "/login"

UNGUARDED: Final = frozenset(
    {"/healthz", "/readyz", "/metrics", LOGIN, "/logout", "/static/page.css", "/favicon.ico"}
)
"""What needs no sign-in: it names no tenant, request or pool. Signing out checks its own form."""

API: Final = "/v1/"
"""Begins the paths of programs; the others are pages, which send people to sign in."""

READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Said with every answer. No script runs on any page; nothing is loaded from elsewhere."""


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the request pass with its caller in the scope."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                said = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    said[name] = value
                said.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        refused = self._refused(scope, headers)
        if refused is not None:
            await refused(scope, receive, sending)
            return
        await self._app(scope, receive, sending)

    def _refused(self, scope: MutableMapping[str, Any], headers: Headers) -> Response | None:
        """Return why a request goes no further; None if it does, with its caller in the scope."""
        told = _too_large(headers)
        if told is None and self._access.is_open and not _is_own_name(headers.get("host", "")):
            told = _no_such_host()
        if told is not None:
            return answer(told)
        path, reads = scope["path"], scope["method"] in READING
        caller = self._caller(scope, headers, path, reads=reads)
        scope[CALLER] = caller or NOBODY
        if path in UNGUARDED:
            return None
        if caller is None or (not reads and caller is NOBODY):
            return _sign_in(path, scope["query_string"].decode("latin-1"), reads=reads)
        told = None if reads else _may_not_change(caller, headers)
        return None if told is None else answer(told)

    def _caller(
        self, scope: MutableMapping[str, Any], headers: Headers, path: str, *, reads: bool
    ) -> Caller | None:
        peer = scope.get("client") or ("", 0)
        found = self._access.by_header(headers, peer[0])
        # Programs change things by what a browser does not send by itself.
        if found is None and (reads or not path.startswith(API)) and "cookie" in headers:
            cookie = cookie_parser(headers["cookie"]).get(COOKIE)
            found = None if cookie is None else self._access.by_cookie(cookie)
        if found is None and self._access.is_open and "authorization" not in headers:
            return NOBODY
        return found


def _too_large(headers: Headers) -> Problem | None:
    """Say why a body is not read: its length must be stated, and small."""
    if "transfer-encoding" in headers:
        return problem(HTTPStatus.LENGTH_REQUIRED, "length", "state the length of the body")
    stated = headers.get("content-length", "0")
    if stated.isdigit() and int(stated) <= MAX_BODY_BYTES:
        return None
    detail = f"a body may have {MAX_BODY_BYTES} bytes"
    return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", detail)


def _may_not_change(caller: Caller, headers: Headers) -> Problem | None:
    if not caller.may_write:
        detail = "this token, or user, may only read"
        return problem(HTTPStatus.FORBIDDEN, "read-only", detail)
    if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
        detail = "a page of another site may not do this"
        return problem(HTTPStatus.FORBIDDEN, "cross-site", detail)
    return None


def _sign_in(path: str, query: str, *, reads: bool) -> Response:
    if path.startswith(API) or not reads:
        detail = "a bearer token is needed (api.read_tokens_file, api.write_tokens_file)"
        return answer(problem(HTTPStatus.UNAUTHORIZED, "token", detail))
    after = quote(f"{path}?{query}" if query else path, safe="")
    return RedirectResponse(f"{LOGIN}?next={after}", status_code=HTTPStatus.SEE_OTHER)


def _is_own_name(host: str) -> bool:
    """True for a name of this machine: a page of elsewhere may have its own name point to us."""
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


def _no_such_host() -> Problem:
    detail = "without sign-in this is served to localhost by that name only"
    return problem(HTTPStatus.MISDIRECTED_REQUEST, "host", detail)
