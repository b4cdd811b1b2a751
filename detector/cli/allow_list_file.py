"""Writes findings that were judged to be no bleeds as the lines of an allow-list."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from detector.cli.terminal import write
from detector.finding import DIGEST_BYTES

if TYPE_CHECKING:
    from detector.cli.api_client import ApiClient

MOST: Final = 100_000
"""Findings of a list at most: more verdicts than people give."""


class Written(NamedTuple):
    """What a list holds. `without` are findings so judged that have no digests."""

    findings: int
    shingles: int
    without: int


class _Line(msgspec.Struct, kw_only=True):
    key: str
    shingles: bytes
    finding: str


def write_lines(api: "ApiClient", path: str | None) -> Written:
    """Ask the API and write what it lists; a reader sees a whole file, or the one before.

    Raises InputError for a file that cannot be written.
    """
    with api.understood():
        entries = list(_entries(api))
        judged = {one["finding"]["id"] for one in _judged(api)}
    _write(b"".join(msgspec.json.encode(one) + b"\n" for one in entries), path)
    digests = {
        one.shingles[at : at + DIGEST_BYTES]
        for one in entries
        for at in range(0, len(one.shingles), DIGEST_BYTES)
    }
    return Written(len(entries), len(digests), len(judged - {one.finding for one in entries}))


def _entries(api: "ApiClient") -> Iterator[_Line]:
    for one in api.rows("/v1/allow-list", "entries", {}, limit=MOST):
        yield msgspec.convert(one, _Line)


def _judged(api: "ApiClient") -> Iterator[dict[str, Any]]:
    return api.rows("/v1/findings", "findings", {"verdict": "false_positive"}, limit=MOST)


def _write(content: bytes, path: str | None) -> None:
    if path is None:
        write(content.decode())
        return
    from exporters.whole_file import whole_file

    with whole_file(path) as fresh:
        Path(fresh).write_bytes(content)
