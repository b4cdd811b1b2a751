"""The port of a sidecar as an ASGI application: pushes, probes and the back-pressure answer."""

from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from detector.errors import RecordError
from ingest.push.answers import JSON, Reasons, handlers, probed
from ingest.push.body import Bodies
from ingest.push.intake import PushIntake, Taken
from ingest.push.pressure import BackPressure
from ingest.push.problem import RETRY_AFTER_S, ProblemError, no_room
from ingest.push.schema import decode_requests, decode_samples

_T = TypeVar("_T")


class Accepted(msgspec.Struct):
    """What became of a push: how many were taken, and of which no tenant is known."""

    accepted: int
    unmapped: int = 0
    refused: dict[str, int] = {}


class PushApp:
    """The endpoints. `live` and `ready` say why not; requests and samples go to `intake`."""

    def __init__(
        self,
        intake: PushIntake,
        pressure: BackPressure,
        bodies: Bodies,
        *,
        live: Reasons,
        ready: Reasons,
    ) -> None:
        self._intake = intake
        self._pressure = pressure
        self._bodies = bodies
        self._live = live
        self._ready = ready

    @property
    def pushes(self) -> list[Route]:
        """The routes of pushes and of the back-pressure answer, without the probes."""
        return [
            Route("/v1/sequences", self._sequences, methods=["POST"]),
            Route("/v1/runtime", self._runtime, methods=["POST"]),
            Route("/v1/backpressure", self._backpressure, methods=["GET"]),
        ]

    def asgi(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                *self.pushes,
                Route("/livez", self._livez, methods=["GET"]),
                Route("/readyz", self._readyz, methods=["GET"]),
            ],
            exception_handlers=handlers(),
        )

    async def _sequences(self, request: Request) -> Response:
        self._check_room()
        body, encoding = await self._bodies.read(request)
        pushed = _decoded(lambda: decode_requests(body, encoding))
        return _accepted(self._intake.requests(pushed))

    async def _runtime(self, request: Request) -> Response:
        self._check_room()
        body, encoding = await self._bodies.read(request)
        pushed = _decoded(lambda: decode_samples(body, encoding))
        taken = self._intake.samples(pushed)
        if not taken.refused:
            for sample in pushed:
                self._pressure.hear(sample)
        return _accepted(taken)

    async def _backpressure(self, request: Request) -> Response:
        asked = request.query_params
        answer = self._pressure.look(engine=asked.get("engine"), kv_pool=asked.get("kv_pool"))
        status = HTTPStatus.OK if answer.admit else HTTPStatus.SERVICE_UNAVAILABLE
        return Response(
            msgspec.json.encode(answer),
            status_code=status,
            media_type=JSON,
            headers={"Cache-Control": "no-store"}
            | ({} if answer.admit else {"Retry-After": str(RETRY_AFTER_S)}),
        )

    async def _livez(self, _request: Request) -> Response:
        return probed(self._live)

    async def _readyz(self, _request: Request) -> Response:
        return probed(self._ready)

    def _check_room(self) -> None:
        if self._intake.is_full:
            raise no_room("what was pushed before has not left yet")


def _decoded(decode: Callable[[], _T]) -> _T:
    try:
        return decode()
    except RecordError as error:
        kind = error.reason.replace("_", "-")
        raise ProblemError(HTTPStatus.BAD_REQUEST, kind, error.what) from None


def _accepted(taken: Taken) -> Response:
    if taken.refused and not taken.accepted:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "refused",
            "nothing of the push was within the bounds of a record",
            reasons=taken.refused,
        )
    body = Accepted(taken.accepted, taken.unmapped, taken.refused)
    return Response(msgspec.json.encode(body), status_code=HTTPStatus.ACCEPTED, media_type=JSON)
