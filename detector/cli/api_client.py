"""Asks an API for people at a terminal: one call each, and errors that say what to do next."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import httpx
import msgspec

from detector.errors import InputError, SettingsError, UsageError
from exporters.http.settings import ClientSettings
from exporters.secret_file import read_lines

TIMEOUT_S: Final = 30.0
"""The slowest question, the blast radius of ten million rows, takes a few seconds."""

MOST_BYTES: Final = 64 * 1024 * 1024
"""Largest answer that is read: 500 findings with all their evidence have some 10 MB."""

PAGE: Final = 500
"""Rows asked for at once."""

Params = Mapping[str, str | int | list[str] | None]


class ApiClient:
    """One API; close it. Raises SettingsError for a token file that cannot be used."""

    def __init__(self, settings: ClientSettings) -> None:
        self._url = settings.url
        headers = {"Accept": "application/json"}
        if settings.token_file is not None:
            token = read_lines(settings.token_file, where="client.token_file")[0]
            # A line of the api's own file is taken too, without its name.
            headers["Authorization"] = f"Bearer {token.split()[-1]}"
        self._client = httpx.Client(base_url=settings.url, headers=headers, timeout=TIMEOUT_S)

    def __enter__(self) -> "ApiClient":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def get(self, path: str, params: Params | None = None) -> Any:  # noqa: ANN401 - JSON
        """Return what a path answers; parameters that are None are left out."""
        return self._call("GET", path, params=_given(params or {}))

    def rows(self, path: str, kind: str, params: Params, *, limit: int) -> Iterator[dict[str, Any]]:
        """Yield the rows of a list, page after page, `limit` at most."""
        cursor: str | None = None
        while limit > 0:
            asked = {**params, "limit": min(limit, PAGE), "cursor": cursor}
            page = self.get(path, asked)
            found = page.get(kind) if isinstance(page, dict) else None
            if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
                raise self._no_api()
            yield from found
            limit -= len(found)
            cursor = page.get("next")
            if cursor is None or not found:
                return

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401
        """Change something, and return what is answered; None for nothing."""
        return self._call(method, path, json=body)

    def _call(self, method: str, path: str, **more: Any) -> Any:  # noqa: ANN401
        until = time.monotonic() + TIMEOUT_S
        content = bytearray()
        try:
            with self._client.stream(method, path, **more) as answer:
                for block in answer.iter_bytes():
                    content += block
                    if len(content) > MOST_BYTES or time.monotonic() > until:
                        raise self._no_api()
            told = json.loads(content) if content else None
        except httpx.HTTPError as error:
            raise InputError(
                f"the API does not answer ({type(error).__name__})",
                where=self._url,
                hint="is `bleedwatch run api` running there? set client.url",
            ) from None
        except (ValueError, RecursionError):
            raise self._no_api() from None
        if answer.is_success:
            return told
        raise self._refused(answer.status_code, told)

    @contextmanager
    def understood(self) -> Iterator[None]:
        """Raise InputError where a block finds answers of another form than ours have."""
        try:
            yield
        except (KeyError, TypeError, msgspec.ValidationError):
            raise self._no_api() from None

    def _no_api(self) -> InputError:
        what = "what answers there is no API of bleedwatch"
        return InputError(what, where=self._url, hint="set client.url")

    def _refused(self, status: int, told: Any) -> Exception:  # noqa: ANN401
        detail = str(told.get("detail", "")) if isinstance(told, dict) else ""
        if status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            hint = "name a file with a token that may do this in client.token_file"
            return SettingsError(detail, where=self._url, hint=hint)
        if status >= httpx.codes.INTERNAL_SERVER_ERROR:
            return InputError(detail or f"status {status}", where=self._url, hint="try again later")
        fields = told.get("errors") if isinstance(told, dict) else None
        named = "; ".join(
            f"{one.get('field')}: {one.get('problem')}"
            for one in (fields if isinstance(fields, list) else ())
            if isinstance(one, dict)
        )
        return UsageError(detail or f"status {status}", where=self._url, hint=named)


def _given(params: Params) -> dict[str, str | int | list[str]]:
    return {name: value for name, value in params.items() if value is not None}
