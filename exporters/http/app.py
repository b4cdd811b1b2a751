"""The API and the pages as one application."""

import logging
import traceback
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from detector.errors import StoreError
from exporters.http.access import Access
from exporters.http.guard import API, Guard
from exporters.http.pages.errors import error_page
from exporters.http.pages.forms import form_routes
from exporters.http.pages.incidents import page_routes
from exporters.http.pages.sign_in import sign_in_routes
from exporters.http.parts import Parts
from exporters.http.problems import Problem, ProblemError, Wrong, answer, problem
from exporters.http.routes.about import about_routes, output_routes
from exporters.http.routes.changes import change_routes, silence_routes
from exporters.http.routes.digests import digest_routes
from exporters.http.routes.findings import finding_routes
from exporters.http.routes.incidents import incident_routes
from exporters.http.routes.probes import probe_routes

_log = logging.getLogger(__name__)


def guarded(parts: Parts, access: Access) -> ASGIApp:
    """Return the application as it is served."""
    return Guard(application(parts, access), access)


def application(parts: Parts, access: Access) -> FastAPI:
    """Return the application without what stands before it."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    routes = (
        incident_routes,
        change_routes,
        finding_routes,
        digest_routes,
        silence_routes,
        about_routes,
        output_routes,
        probe_routes,
    )
    # Added one by one: routers that are included are asked anew for their routes at every request.
    for routes_of in routes:
        app.router.routes.extend(routes_of(parts).routes)
    for pages_of in (page_routes, form_routes, sign_in_routes):
        app.router.routes.extend(pages_of(parts, access).routes)
    app.add_exception_handler(ProblemError, _told)
    app.add_exception_handler(StoreError, _store_away)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _fault)
    return app


def _answer(request: Request, told: Problem) -> Response:
    return answer(told) if request.url.path.startswith(API) else error_page(told)


def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    return _answer(request, error.problem)


def _store_away(request: Request, _error: Exception) -> Response:
    detail = "the store cannot be used just now; try again"
    return _answer(request, problem(HTTPStatus.SERVICE_UNAVAILABLE, "store", detail))


def _fault(request: Request, error: Exception) -> Response:
    """Tell of a defect of ours by kind and place: its message may hold anything."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    _log.error("internal fault (%s) at %s:%s", type(error).__name__, last.filename, last.lineno)
    detail = "this is a bug in bleedwatch; the log of the api says where"
    return _answer(request, problem(HTTPStatus.INTERNAL_SERVER_ERROR, "fault", detail))


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    told = problem(status, status.phrase.lower().replace(" ", "-"), status.description)
    made = _answer(request, told)
    made.headers.update(error.headers or {})
    return made


def _invalid(request: Request, error: Exception) -> Response:
    """Name the fields that break their bounds, not their values, nor fields that we do not know."""
    assert isinstance(error, RequestValidationError)
    errors = tuple(
        Wrong(".".join(_known_part(one)), str(one["type"])) for one in error.errors()[:20]
    )
    detail = "a field is missing, unknown, or breaks its bounds"
    return _answer(
        request, problem(HTTPStatus.UNPROCESSABLE_ENTITY, "fields", detail, errors=errors)
    )


def _known_part(error: dict[str, Any]) -> list[str]:
    """Return where a fault is; of a field or place that only the caller knows the part above it."""
    is_ours = error["type"] != "extra_forbidden"
    return [str(part) for part in (error["loc"] if is_ours else error["loc"][:-1])]
