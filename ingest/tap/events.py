"""Cuts a stream into its server-sent events, and finds what each of them carries."""

import re
from typing import Final

_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_DATA: Final = re.compile(rb"^data: ?(.*?)\r?$", re.MULTILINE)

_LONGEST_END: Final = 4


class Events:
    """Collects pieces until an event is whole. `most_bytes` is the largest event that is kept."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._tail = bytearray()

    @property
    def is_too_large(self) -> bool:
        """Tell whether an event is larger than may be kept; `rest` gives what there is."""
        return len(self._tail) > self._most_bytes

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the events that a piece ends, each with the empty line behind it."""
        if not self._tail and _END.search(piece, 0, len(piece) - 2) is None and _ends(piece):
            return [piece]  # as engines send: an event in a piece
        looked = max(0, len(self._tail) - _LONGEST_END)
        self._tail += piece
        events: list[bytes] = []
        start = 0
        for end in _END.finditer(self._tail, looked):
            events.append(bytes(self._tail[start : end.end()]))
            start = end.end()
        del self._tail[:start]
        return events

    def rest(self) -> bytes:
        """Return what has come since the last whole event, and forget it."""
        rest = bytes(self._tail)
        self._tail.clear()
        return rest


def payload(event: bytes) -> tuple[int, int] | None:
    """Return where the JSON object of an event begins and ends; None if it carries none or more."""
    found = None
    for line in _DATA.finditer(event):
        if found is not None:
            return None
        found = line
    if found is None or not found[1].startswith(b"{"):
        return None
    return found.span(1)


def _ends(piece: bytes) -> bool:
    return piece.endswith((b"\n\n", b"\r\n\r\n"))
