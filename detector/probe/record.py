"""The result of a probe with what the engines ran: a file that a sidecar compares later."""

import os
from pathlib import Path
from typing import Final

import msgspec

from detector.errors import InputError
from detector.probe.fingerprint import Fingerprint

MAX_RECORD_BYTES: Final = 2**20
"""A record has some kilobytes; a larger file is something else."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One probe. Times are Unix milliseconds; `requests` is how many were sent."""

    url: str
    started_at_ms: int
    ended_at_ms: int
    passed: bool
    requests: int
    skipped: list[str]
    configurations: list[Fingerprint]
    checks: list[dict[str, str]]


def write_record(record: Record, path: str) -> None:
    """Write a record; a reader sees a whole one. Raises OSError."""
    fresh = f"{path}.new"
    Path(fresh).write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    os.replace(fresh, path)


def read_record(path: str) -> Record:
    """Return the record of a file. Raises InputError for one that cannot be read."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_RECORD_BYTES)
        return msgspec.json.decode(content, type=Record)
    except OSError as error:
        what = f"the record of a probe cannot be read: {(error.strerror or '').lower()}"
    except (msgspec.DecodeError, RecursionError):
        what = "this is not the record of a probe"
    raise InputError(what, where=path, hint="bleedwatch probe URL --record FILE writes one")
