"""Asks a running engine for its version: one bounded request, no redirects."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from detector.errors import InputError, ScrapeError, UsageError
from ingest.scrape.documents import parse_document
from ingest.scrape.http import Endpoint

TIMEOUT_S: Final = 10.0
"""An engine answers this from memory; one under load took two seconds at most."""

MAX_BYTES: Final = 1024 * 1024
"""SGLang's answer holds its flags and per-rank state: some 30 KB."""


def ask(url: str) -> Mapping[str, object]:
    """Return the JSON object that a URL answers with.

    Raises UsageError for what is no URL, InputError when there is no such answer.
    """
    parts = urlsplit(url)
    try:
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid or parts.username is not None:
        raise UsageError(
            "not an HTTP address",
            where="--url",
            hint="such as http://127.0.0.1:8000/version, without user and password",
        )
    path = parts.path or "/version"
    where = f"{parts.netloc}{path}"
    try:
        endpoint = Endpoint(url, timeout_s=TIMEOUT_S, max_bytes=MAX_BYTES)
        answer = parse_document(endpoint.get(path).body, where=where)
    except ScrapeError as error:
        raise InputError(
            error.what, where=where, hint="check the address, or state --version"
        ) from None
    if not isinstance(answer, dict):
        raise InputError(
            "the answer is no JSON object",
            where=where,
            hint="vLLM tells its version at /version, SGLang at /server_info",
        )
    return answer
