"""Asks a running engine for its version: one bounded request, no redirects."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from detector.errors import InputError, ScrapeError, UsageError
from ingest.scrape.documents import parse_document
from ingest.scrape.http import Endpoint

TIMEOUT_S: Final = 10.0
"""An engine answers this from memory; one under load took two seconds at most."""

MAX_BYTES: Final = 1024 * 1024
"""SGLang's answer holds its flags and per-rank state: some 30 KB."""


PLACES: Final = ("/version", "/server_info", "/get_server_info")
"""Where engines tell their version: vLLM, SGLang, and SGLang as it was before."""

_FORMS: Final = (
    "the engine's address, such as http://127.0.0.1:8000, or with a path, such as "
    "http://127.0.0.1:30000/server_info"
)


def ask(url: str) -> Mapping[str, object]:
    """Return the JSON object that an engine answers with, at the path of a URL.

    Without a path its usual places are asked, one after the other. Raises UsageError for what is no
    address, InputError when there is no such answer.
    """
    parts = urlsplit(url)
    try:
        is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or parts.username is not None or parts.query or parts.fragment:
        hint = f"{_FORMS}; without user, password and query"
        raise UsageError("not an HTTP address", where="--url", hint=hint)
    endpoint = Endpoint(url, timeout_s=TIMEOUT_S, max_bytes=MAX_BYTES)
    places = PLACES if parts.path in ("", "/") else (parts.path,)
    try:
        return _first(endpoint, places)
    except ScrapeError as error:
        is_elsewhere = error.reason == "not_found"
        hint = f"give {_FORMS}" if is_elsewhere else "check the address"
        asked = endpoint.name + (places[0] if len(places) == 1 else f" ({', '.join(places)})")
        raise InputError(error.what, where=asked, hint=f"{hint}; or state --version") from None


def _first(endpoint: Endpoint, places: Sequence[str]) -> Mapping[str, object]:
    """Return the answer of the first place that there is."""
    try:
        return _object(endpoint, places[0])
    except ScrapeError as error:
        if error.reason != "not_found" or len(places) == 1:
            raise
    return _first(endpoint, places[1:])


def _object(endpoint: Endpoint, path: str) -> Mapping[str, object]:
    where = f"{endpoint.name}{path}"
    answer = parse_document(endpoint.get(path).body, where=where)
    if not isinstance(answer, dict):
        hint = "vLLM tells its version at /version, SGLang at /server_info"
        raise InputError("the answer is no JSON object", where=where, hint=hint)
    return answer
