"""What outputs over HTTP share: their URL and token, from the settings or from files, and the door.

Files are read for every notification: a secret that is replaced is used at once, and one that
cannot be read delays what is sent and loses nothing.
"""

from collections.abc import Mapping
from typing import Final

from detector.errors import SettingsError
from exporters.outputs.contract import Outcome, Retry
from exporters.outputs.http_door import HttpDoor
from exporters.outputs.settings import HttpOutputSettings, check_url
from exporters.secret_file import Hidden, read_lines

JSON: Final = {"content-type": "application/json"}


class HttpOutput:
    """The base of outputs that post JSON to one URL.

    Raises SettingsError if one of its files cannot be used now.
    """

    resend_ms: int | None = None

    def __init__(self, settings: HttpOutputSettings) -> None:
        self.name = settings.name
        self._settings = settings
        self._where = f"output {settings.name}"
        self._door = HttpDoor(
            timeout_ms=settings.timeout_ms,
            allow_private=settings.allow_private,
            ca_file=settings.ca_file,
            where=self._where,
        )
        self._url()
        self._token()

    def close(self) -> None:
        """Nothing stays open between two notifications."""

    def _post(
        self, body: bytes, *, at_ms: int, headers: Mapping[str, str] = JSON, path: str = ""
    ) -> Outcome:
        try:
            url = self._url().rstrip("/") + path if path else self._url()
            sent = {**JSON, **headers, **self._token()}
        except SettingsError:
            return Retry("a file of the output cannot be used")
        return self._door.post(url, body, sent, at_ms=at_ms)

    def _url(self) -> str:
        if self._settings.url is not None:
            return self._settings.url
        where = f"{self._where}.url_file"
        url = read_lines(self._settings.url_file or "", where=where)[0]
        try:
            check_url(url)
        except ValueError as error:
            raise SettingsError(f"the URL in the file {error}", where=where) from None
        if not self._settings.allow_private and not url.startswith("https:"):
            raise SettingsError(
                "the URL in the file is not https", where=where, hint="or set allow_private"
            )
        return str(url)

    def _token(self) -> Mapping[str, str]:
        path = self._settings.token_file
        if path is None:
            return {}
        where = f"{self._where}.token_file"
        token = read_lines(path, where=where)[0]
        if not token.isascii() or not token.isprintable():
            raise SettingsError("the file does not hold a token", where=where)
        return {"authorization": Hidden(f"Bearer {token}")}
