"""Routes that need no sign-in: probes, metrics, and the one file that pages load."""

from http import HTTPStatus
from importlib.resources import files

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from exporters.http.answers import Probe, told
from exporters.http.documented import answers
from exporters.http.parts import Parts

STYLE_S = 3600
"""How long a browser keeps the style sheet."""


def probe_routes(parts: Parts) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["probes"])
    style = files("exporters.page").joinpath("static/page.css").read_bytes()

    @router.get("/healthz", **answers(Probe))
    async def healthy() -> Response:
        """Say that the process answers."""
        return told(Probe(ok=True, reasons=[]))

    @router.get("/readyz", **answers(Probe))
    def ready() -> Response:
        """Say whether incidents are up to date, and why not."""
        reasons = parts.not_ready()
        unready = HTTPStatus.SERVICE_UNAVAILABLE
        return told(Probe(not reasons, reasons), status=unready if reasons else HTTPStatus.OK)

    @router.get("/metrics", include_in_schema=False)
    def metrics(request: Request) -> Response:
        body, media_type = parts.metrics(request.headers.get("accept", ""))
        return Response(body, headers={"Content-Type": media_type})

    @router.get("/static/page.css", include_in_schema=False)
    async def page_style() -> Response:
        kept = {"Cache-Control": f"max-age={STYLE_S}"}
        return Response(style, media_type="text/css", headers=kept)

    @router.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return Response(status_code=HTTPStatus.NO_CONTENT)

    return router
