"""The description of a sidecar's port (OpenAPI 3.1), made from what the code decodes.

`python -m ingest.push.openapi` prints it; docs/openapi-sidecar.json is what it prints.
"""

import json
import sys
from typing import Any, Final

import msgspec

from ingest.push.answers import JSON, Answer
from ingest.push.app import Accepted
from ingest.push.pressure import Pressure
from ingest.push.problem import MEDIA_TYPE, Problem
from ingest.push.schema import PushedSamples, PushedSequences
from ingest.schema import Encoding

_SHOWN: Final = (PushedSequences, PushedSamples, Pressure, Accepted, Answer, Problem)

_PROBLEMS: Final = {
    "400": "The body is not what its type says, or not of the right shape.",
    "401": "A bearer token is needed.",
    "408": "The body did not come in time.",
    "413": "The body is larger than push.max_body_bytes.",
    "415": "The type is neither JSON nor MessagePack, or the body is compressed.",
    "422": "Nothing of it was within the bounds of a record; reasons are counted.",
    "503": "There is no room; try again after Retry-After seconds.",
}


def document() -> dict[str, Any]:
    """Return the description."""
    shapes, schemas = msgspec.json.schema_components(
        _SHOWN, ref_template="#/components/schemas/{name}"
    )
    shape = dict(zip((kind.__name__ for kind in _SHOWN), shapes, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "bleedwatch sidecar",
            "version": "1",
            "description": "Where a gateway pushes requests and samples, and asks whether to "
            "admit more. Tokens are hashed as they are taken and leave sealed.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:9465"}],
        "security": [{}, {"token": []}],
        "paths": {
            "/v1/sequences": _push(
                "pushSequences",
                "Take requests with their token ids.",
                shape["PushedSequences"],
                shape,
            ),
            "/v1/runtime": _push(
                "pushRuntime", "Take samples of engines.", shape["PushedSamples"], shape
            ),
            "/v1/backpressure": _backpressure(shape),
            "/livez": _probe("live", "Does it turn?", shape),
            "/readyz": _probe("ready", "Does it lose nothing right now?", shape),
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    }


def _push(name: str, summary: str, body: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
    answers = {"202": _answer("Taken, in memory; it leaves within a second.", shape["Accepted"])}
    problems = {
        status: _answer(text, shape["Problem"], MEDIA_TYPE) for status, text in _PROBLEMS.items()
    }
    return {
        "post": {
            "operationId": name,
            "summary": summary,
            "requestBody": {
                "required": True,
                "content": {str(encoding): {"schema": body} for encoding in Encoding},
            },
            "responses": answers | problems,
        }
    }


def _backpressure(shape: dict[str, Any]) -> dict[str, Any]:
    return {
        "get": {
            "operationId": "backpressure",
            "summary": "Should engines admit more requests?",
            "parameters": [
                {"name": name, "in": "query", "schema": {"type": "string"}, "description": text}
                for name, text in (
                    ("engine", "Ask about one engine only."),
                    ("kv_pool", "Ask about one KV pool only."),
                )
            ],
            "responses": {
                "200": _answer("Admit, or nothing is known.", shape["Pressure"]),
                "503": _answer("A pool is above the limit: admit no more.", shape["Pressure"]),
            },
        }
    }


def _probe(name: str, summary: str, shape: dict[str, Any]) -> dict[str, Any]:
    return {
        "get": {
            "operationId": name,
            "summary": summary,
            "responses": {
                "200": _answer("Yes.", shape["Answer"]),
                "503": _answer("No, for these reasons.", shape["Answer"]),
            },
        }
    }


def _answer(text: str, shape: dict[str, Any], media_type: str = JSON) -> dict[str, Any]:
    return {"description": text, "content": {media_type: {"schema": shape}}}


if __name__ == "__main__":
    json.dump(document(), sys.stdout, indent=2)
    sys.stdout.write("\n")
