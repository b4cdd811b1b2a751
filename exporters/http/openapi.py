"""The description of the API (OpenAPI 3.1), made from what the code takes and answers.

docs/openapi-api.json holds it; `make api-description` writes it anew.
"""

import json
from typing import Any, Final

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from exporters.http.answers import SHOWN
from exporters.http.documented import REF
from exporters.http.problems import Problem

_SCHEMES: Final = {
    "read": {"type": "http", "scheme": "bearer", "description": "A token that may read."},
    "write": {"type": "http", "scheme": "bearer", "description": "A token that may change."},
}


def document(app: FastAPI) -> dict[str, Any]:
    """Return the description of an application."""
    made = get_openapi(
        title="bleedwatch",
        version="1",
        summary="Findings, incidents and what people do about them.",
        description="Ids, counts, times and one sentence: never text of a tenant, tokens or "
        "hashes of them; keyed digests of what was found where they are asked for. Errors are "
        "problem details (RFC 9457). A field that is not known is refused in a body, and answers "
        "may get further fields.",
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        servers=[{"url": "http://127.0.0.1:8080"}],
        routes=app.routes,
    )
    _, schemas = msgspec.json.schema_components((*SHOWN, Problem), ref_template=REF + "{name}")
    parts = made.setdefault("components", {})
    known = parts.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        known.pop(unused, None)
    parts["schemas"] = dict(sorted({**known, **schemas}.items()))
    parts["securitySchemes"] = _SCHEMES
    return made


def text(app: FastAPI) -> str:
    """Return the description as it is committed."""
    return json.dumps(document(app), indent=1, sort_keys=True) + "\n"
