"""Who asks: by bearer token, by the cookie of a session, or by the word of a trusted proxy."""

import ipaddress
import os
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Final

from exporters.http.sessions import Sessions
from exporters.http.settings import ApiSettings
from exporters.http.tokens import Caller, Tokens

COOKIE: Final = "bleedwatch_session"

NOBODY: Final = Caller("nobody", may_write=False)
"""Whoever reaches an open port: reads, and changes nothing."""

MAX_USER_CHARS: Final = 200
"""A longer name in the header of a proxy is no user."""


class Access:
    """Tells callers apart. `clock` gives seconds that never go back, `now_ms` wall time."""

    def __init__(
        self, settings: ApiSettings, *, clock: Callable[[], float], now_ms: Callable[[], int]
    ) -> None:
        self._settings = settings
        self._tokens = Tokens(settings, clock=clock)
        self._now_ms = now_ms
        self._networks = [ipaddress.ip_network(one) for one in settings.proxy_from]
        self._own_key = os.urandom(32)
        """Signs where there are no tokens to share a key by: good for this process only."""

    @property
    def is_open(self) -> bool:
        """True if everybody who reaches the port may read."""
        return self._settings.is_open

    @property
    def sessions(self) -> Sessions:
        """Signs with a key that changes with the tokens: whose token goes, is signed out."""
        return Sessions(self._own_key if self._tokens.is_empty else self._tokens.seal)

    def by_token(self, token: str) -> Caller | None:
        """Return whose token it is."""
        return self._tokens.caller(token)

    def by_header(self, headers: Mapping[str, str], peer: str) -> Caller | None:
        """Return who a request is from that brings a bearer token, or comes through the proxy."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.by_token(token.strip())
        return self._by_proxy(headers, peer)

    def by_cookie(self, cookie: str) -> Caller | None:
        """Return who has signed in with this cookie."""
        return self.sessions.caller(cookie, now_ms=self._now_ms())

    def _by_proxy(self, headers: Mapping[str, str], peer: str) -> Caller | None:
        header = self._settings.proxy_user_header
        user = headers.get(header, "") if header is not None else ""
        if not user or len(user) > MAX_USER_CHARS or not user.isprintable():
            return None
        if not self._is_proxy(peer):
            return None
        writes = any(fnmatchcase(user, one) for one in self._settings.proxy_writers)
        return Caller(user, may_write=writes)

    def _is_proxy(self, peer: str) -> bool:
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return False
        return any(address in network for network in self._networks)
