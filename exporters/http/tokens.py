"""Bearer tokens in files: who has which, and what they may do; read again while the api runs."""

import hashlib
import hmac
import logging
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from detector.errors import SettingsError
from exporters.http.settings import ApiSettings
from exporters.secret_file import read_lines

SHORTEST: Final = 16
"""64 bits as hexadecimal digits: nobody guesses that over a network."""

READ_AGAIN_S: Final = 5.0
"""How long a token that was taken out of its file still works, at most."""

_LINE: Final = re.compile(r"([A-Za-z0-9._@-]{1,64})[ \t]+(\S+)")

_log = logging.getLogger(__name__)


class Caller(NamedTuple):
    """Who asks, and whether they may change anything."""

    name: str
    may_write: bool


class Tokens:
    """The tokens of both files. Raises SettingsError if a file cannot be used at the start.

    Later such a file counts as empty: a token that cannot be checked is not let in. `clock` gives
    seconds that never go back.
    """

    def __init__(self, settings: ApiSettings, *, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._known = self._read()
        self._read_s = clock()

    def caller(self, token: str) -> Caller | None:
        """Return whose token it is; the time it takes does not tell how much of it is right."""
        given = _digest(token)
        found = None
        for digest, caller in self._current():
            if hmac.compare_digest(given, digest):
                found = caller
        return found

    @property
    def seal(self) -> bytes:
        """A key that all processes with these files share; another one when a token changes."""
        return hashlib.sha256(b"".join(digest for digest, _ in self._current())).digest()

    @property
    def is_empty(self) -> bool:
        """True if nobody has a token."""
        return not self._current()

    def _current(self) -> list[tuple[bytes, Caller]]:
        now_s = self._clock()
        if now_s - self._read_s >= READ_AGAIN_S:
            self._read_s = now_s
            try:
                self._known = self._read()
            except SettingsError as error:
                _log.warning("no token is accepted: %s: %s", error.where, error)
                self._known = []
        return self._known

    def _read(self) -> list[tuple[bytes, Caller]]:
        settings = self._settings
        return [
            *_in_file(settings.read_tokens_file, "api.read_tokens_file", may_write=False),
            *_in_file(settings.write_tokens_file, "api.write_tokens_file", may_write=True),
        ]


def _in_file(path: str | None, where: str, *, may_write: bool) -> Iterator[tuple[bytes, Caller]]:
    if path is None:
        return
    for number, line in enumerate(read_lines(path, where=where), start=1):
        parts = _LINE.fullmatch(line)
        if parts is None or len(parts[2]) < SHORTEST:
            raise SettingsError(
                f"entry {number} of the file is not a name and a token of {SHORTEST} or more "
                "characters",
                where=where,
                hint="write lines such as: alice $(openssl rand -hex 32)",
            )
        yield _digest(parts[2]), Caller(parts[1], may_write)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
