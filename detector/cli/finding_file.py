"""Reads findings back from JSON lines and picks the one that an id or its beginning means."""

import difflib
import io
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from detector.errors import InputError, UsageError
from detector.finding import Finding

MIN_PREFIX = 6
"""Shortest beginning of an id that is accepted: 24 bits."""

MAX_LINE_BYTES = 16 * 1024 * 1024
"""A finding is a few kilobytes; a longer line is another kind of file."""

_QUOTED = re.compile(r"(?<=^Invalid enum value) .*(?= - at `)", re.DOTALL)
"""The one message of the decoder that quotes what the file holds."""

_HINT = "write findings with `bleedwatch replay ... --save FILE` or `-o jsonl`"


def find(identifier: str, file: str) -> Finding:
    """Return the finding whose id starts with `identifier`; `-` reads stdin.

    Raises UsageError when none or several do, InputError with the line when the file is broken.
    """
    wanted = identifier.strip().lower()
    if len(wanted) < MIN_PREFIX:
        raise UsageError(
            f"an id needs at least {MIN_PREFIX} characters", hint="copy it from the findings table"
        )
    matches: dict[str, Finding] = {}
    known: list[str] = []
    for finding in read_findings(file):
        known.append(finding.id)
        if finding.id == wanted:
            return finding
        if finding.id.startswith(wanted):
            matches[finding.id] = finding
    if len(matches) == 1:
        return matches.popitem()[1]
    if matches:
        raise UsageError(
            f"{len(matches)} findings start with `{wanted}`",
            where=file,
            hint=f"one of {_listed(sorted(matches))}",
        )
    raise UsageError(
        f"no finding `{wanted}` among {len(known):,}", where=file, hint=_nearest(wanted, known)
    )


def read_findings(file: str) -> Iterator[Finding]:
    """Yield the findings of a file in order, skipping blank lines.

    Raises InputError for a file that cannot be opened or a line that is no finding.
    """
    decoder = msgspec.json.Decoder(Finding)
    with _opened(file) as stream:
        for number in itertools.count(1):
            line = stream.readline(MAX_LINE_BYTES + 1)
            if not line:
                return
            if not line.strip():
                continue
            try:
                finding = decoder.decode(line)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                raise InputError(
                    f"not a finding: {_cause(error, line)}", where=f"{file}:{number}", hint=_HINT
                ) from error
            yield finding


def _opened(file: str) -> BinaryIO:
    if file == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed", where="-")
        return io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
    try:
        return Path(file).open("rb")
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise InputError(f"cannot read the findings: {reason}", where=file, hint=_HINT) from error


def _nearest(wanted: str, known: list[str]) -> str:
    starts = difflib.get_close_matches(wanted, [i[: len(wanted)] for i in known], n=3, cutoff=0.5)
    close = [identifier for start in starts for identifier in known if identifier.startswith(start)]
    if close:
        return f"near: {_listed(list(dict.fromkeys(close)))}"
    return f"for example {_listed(known)}" if known else "the file holds no findings"


def _cause(error: Exception, line: bytes) -> str:
    """Return the decoder's words without the values it quotes: they may be a tenant's text."""
    if len(line) > MAX_LINE_BYTES:
        return "longer than any finding"
    return "nested too deeply" if isinstance(error, RecursionError) else _QUOTED.sub("", str(error))


def _listed(identifiers: list[str]) -> str:
    return ", ".join(identifiers[:3])
