"""Writes the audit records of a process as JSON lines, and reads them back after a crash."""

import json
import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from .events import SCHEMA, Event

_FIELDS: Final = frozenset(one.name for one in fields(Event))


class Journal:
    """Appends events to a file that its user and group may read; a callable, as `Book` wants it.

    The file is opened for each event, so it may be rotated by renaming at any time. A line is
    written in one piece before the call returns; what was cut short by a full disk or a crash is
    ended by the next event, and readers pass over it. Raises OSError if it cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._is_cut = _is_cut(self._path)

    def __call__(self, event: Event) -> None:
        """Append an event."""
        line = event.line()
        if self._is_cut:
            line = b"\n" + line
        self._is_cut = True
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o640)
        try:
            written = os.write(descriptor, line)
        finally:
            os.close(descriptor)
        if written != len(line):
            raise OSError("the audit record was not written whole: is the disk full?")
        self._is_cut = False


def read_journal(path: str | Path) -> Iterator[Event]:
    """Yield the events of a file in order; what is no event is passed over."""
    with Path(path).open("rb") as stream:
        for line in stream:
            event = _event(line)
            if event is not None:
                yield event


def _event(line: bytes) -> Event | None:
    try:
        read: Any = json.loads(line)
        if not isinstance(read, dict) or read.pop("schema", None) != SCHEMA:
            return None
        return Event(**{name: value for name, value in read.items() if name in _FIELDS})
    except (ValueError, TypeError, RecursionError):
        return None


def _is_cut(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            if stream.seek(0, os.SEEK_END) == 0:
                return False
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) != b"\n"
    except FileNotFoundError:
        return False
