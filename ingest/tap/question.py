"""What the engine is asked in place of what the client asked: the same, and the token ids."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from ingest.limits import MAX_TEXT_CHARS
from ingest.tap.dialects import Dialect
from ingest.tap.members import TRUE, Members, is_null, is_off, members, objects, text, written

_ROLES: Final = {"developer": "system", "function": "tool"}
"""Older and newer names of the same roles in the OpenAI API."""

_EMPTY: Final = (b'""', b"[]", b"null")

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, OverflowError, RecursionError)
"""What a body that is no JSON object raises."""


class Question(NamedTuple):
    """A request to the engine, and what of its answer the client had not asked for."""

    body: bytes
    hidden: frozenset[str]
    """Members of the answer that are there only because we asked."""
    asks: bool
    """False where ids come neither for us nor for the client."""

    def __repr__(self) -> str:
        """Show no text."""
        return f"Question({len(self.body)} bytes)"


class Client:
    """The body of a request as its client wrote it; raises one of UNREADABLE if it is no object."""

    def __init__(self, body: bytes, dialect: Dialect) -> None:
        self._members = members(body)
        self._dialect = dialect
        self._body = body

    def field(self, name: str) -> str | None:
        """Return a text member that is short enough to name something."""
        found = text(self._members.get(name))
        return found if found and len(found) <= MAX_TEXT_CHARS else None

    @property
    def roles(self) -> tuple[str, ...] | None:
        """Roles of the messages that say something, in order; None if there are none."""
        if not self._dialect.is_chat:
            return None
        said = [
            text(one.get("role")) or ""
            for one in objects(self._members.get("messages"))
            if bytes(one.get("content", b"null")) not in _EMPTY or "tool_calls" in one
        ]
        return tuple(_ROLES.get(role, role) for role in said) or None

    @property
    def echoes(self) -> bool:
        """Tell whether asking for ids would change what is echoed."""
        return self._dialect.echo_differs and not is_off(self._members.get("echo"))

    def question(self, *, request_id: str, isolation: Mapping[str, str]) -> Question:
        """Return what to send. `isolation`: values of fields that keep tenants apart.

        A client's own id of the request stays; `request_id` is used where it has none.
        """
        streams = not is_off(self._members.get("stream"))
        asks = self._dialect.asks_stream if streams else self._dialect.asks
        new: Members = {name: written(value) for name, value in isolation.items()}
        hidden: set[str] = set()
        if not self.echoes:
            for name, brings in asks.items():
                if is_off(self._members.get(name)):
                    new[name] = TRUE
                    hidden.update(brings)
        if is_null(self._members.get(self._dialect.id_field)) and not self._is_batch:
            new[self._dialect.id_field] = written(request_id)
        return Question(
            msgspec.json.encode(self._members | new) if new else self._body,
            frozenset(hidden),
            bool(asks) and not self.echoes,
        )

    @property
    def _is_batch(self) -> bool:
        """Tell whether one id may not be enough: a list may hold several prompts."""
        return (
            any(bytes(self._members.get(name, b""))[:1] == b"[" for name in ("prompt", "text"))
            or bytes(self._members.get("input_ids", b""))[:2] == b"[["
        )
