"""The answer to one request on its way back: ids are kept, and removed where only we asked.

Nothing here raises. What cannot be read passes as it came, and counts.
"""

import logging
from typing import TYPE_CHECKING, Final

from ingest.tap.answer import read
from ingest.tap.dialects import Dialect
from ingest.tap.events import Events, payload
from ingest.tap.exchange import Exchange
from ingest.tap.question import UNREADABLE

if TYPE_CHECKING:
    from ingest.tap.watch import Watch

_log = logging.getLogger(__name__)

SUCCESS: Final = range(200, 300)


class Rewriting:
    """Takes an answer piece by piece and gives back what the client gets.

    First `head`, then `feed` for each piece, then `end` if the answer came whole, and `close`.
    """

    def __init__(
        self, watch: "Watch", exchange: Exchange, dialect: Dialect, hidden: frozenset[str]
    ) -> None:
        self._watch = watch
        self._exchange = exchange
        self._dialect = dialect
        self._hidden = hidden
        self._status = 0
        self._events: Events | None = None
        self._whole: bytearray | None = None
        self._held = 0
        self._is_closed = False

    @property
    def changes_length(self) -> bool:
        """Tell whether the answer is held until it is whole, and may get another length."""
        return self._whole is not None

    def head(self, status: int, content_type: bytes, content_encoding: bytes) -> None:
        """Hear how the answer begins, and decide how it is read."""
        self._status = status
        if status not in SUCCESS:
            return
        if content_encoding.strip().lower() not in (b"", b"identity"):
            self._exchange.drop("compressed_answer")
        elif content_type.lower().startswith(b"text/event-stream"):
            self._events = Events(self._watch.settings.max_answer_bytes)
        else:
            self._whole = bytearray()

    def feed(self, piece: bytes) -> bytes:
        """Return what of an answer can go on."""
        if self._events is not None:
            return self._stream(self._events, piece)
        if self._whole is None:
            return piece
        cause = self._refusal(len(piece))
        if cause is None:
            self._whole += piece
            return b""
        self._exchange.drop(cause)
        passed = bytes(self._whole) + piece
        self._whole = None
        self._give()
        return passed

    def end(self) -> bytes:
        """Return the rest of an answer that came whole."""
        if self._whole is not None:
            return self._read(bytes(self._whole)) or b""
        return b"" if self._events is None else self._events.rest()

    def close(self, *, is_cut: bool) -> None:
        """Hand over what was kept; `is_cut` if the answer did not come whole, or no one took it."""
        if self._is_closed:
            return
        self._is_closed = True
        self._give()
        if not self._status:
            self._exchange.drop("no_answer")
            return
        try:
            self._watch.finished.put(
                self._exchange,
                ended_at_ms=self._watch.now_ms(),
                status=self._status,
                is_cut=is_cut,
            )
        except Exception as error:  # noqa: BLE001 - the client has its answer
            self._watch.fault("a finished request was lost", error)
            self._exchange.close()

    def _stream(self, events: Events, piece: bytes) -> bytes:
        passed = b"".join([self._event(event) for event in events.feed(piece)])
        if events.is_too_large:
            self._exchange.drop("answer_too_large")
            self._events = None
            passed += events.rest()
        return passed

    def _event(self, event: bytes) -> bytes:
        place = payload(event)
        if place is None:
            return event
        start, end = place
        kept = self._read(event[start:end])
        return b"" if kept is None else event[:start] + kept + event[end:]

    def _read(self, data: bytes) -> bytes | None:
        try:
            seen, kept = read(data, self._dialect, self._hidden)
        except UNREADABLE:
            self._exchange.missed("unread")
            return data
        except Exception as error:  # noqa: BLE001 - a fault of ours must not fail a client
            self._fault(error)
            return data
        try:
            self._exchange.take(seen)
        except Exception as error:  # noqa: BLE001 - what is kept must not change what is passed
            self._fault(error)
        return kept

    def _fault(self, error: Exception) -> None:
        _log.warning("an answer is not seen because of a fault (%s)", type(error).__name__)
        self._exchange.drop("fault")

    def _refusal(self, more: int) -> str | None:
        """Say why so many more bytes cannot be held; None if they can."""
        if self._held + more > self._watch.settings.max_answer_bytes:
            return "answer_too_large"
        if not self._watch.room.take(more):
            return "memory"
        self._held += more
        return None

    def _give(self) -> None:
        self._watch.room.give(self._held)
        self._held = 0
