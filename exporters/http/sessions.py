"""Sessions of people who signed in, and tokens of forms: signed text, so nothing is stored."""

import base64
import hashlib
import hmac
from typing import Final

import msgspec

from exporters.http.tokens import Caller

SESSION_MS: Final = 12 * 3_600_000
"""How long somebody stays signed in: a shift."""


class _Session(msgspec.Struct, frozen=True, array_like=True):
    name: str
    may_write: bool
    ends_at_ms: int


_DECODER: Final = msgspec.json.Decoder(_Session)


class Sessions:
    """Makes and checks what a browser holds; `key` is secret and signs all of it."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def cookie(self, caller: Caller, *, now_ms: int) -> str:
        """Return the value of the cookie of somebody who has signed in."""
        body = msgspec.json.encode(_Session(caller.name, caller.may_write, now_ms + SESSION_MS))
        return f"{_text(body)}.{_text(self._sign(b'session', body))}"

    def caller(self, cookie: str, *, now_ms: int) -> Caller | None:
        """Return who the cookie was given to; None for a forged, broken or old one."""
        body, _, signature = cookie.partition(".")
        try:
            raw, given = _bytes(body), _bytes(signature)
            if not hmac.compare_digest(given, self._sign(b"session", raw)):
                return None
            session = _DECODER.decode(raw)
        except (ValueError, msgspec.MsgspecError, RecursionError):
            return None
        if session.ends_at_ms <= now_ms:
            return None
        return Caller(session.name, session.may_write)

    def form_token(self, caller: Caller) -> str:
        """Return what a form of this person must bring back."""
        return _text(self._sign(b"form", caller.name.encode()))

    def is_form_token(self, given: str, caller: Caller) -> bool:
        """True if a form was made for this person."""
        return hmac.compare_digest(given.encode(), self.form_token(caller).encode())

    def _sign(self, purpose: bytes, body: bytes) -> bytes:
        return hmac.new(self._key, purpose + b"\0" + body, hashlib.sha256).digest()


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
