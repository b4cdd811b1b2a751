"""What the end of a log shows: which requests it tells of, what they lack, whose they are.

Only the end is read, as the flags of an engine can change with every restart. Counts and times are
kept, nothing of what the lines say.
"""

import glob
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from detector.config.root import Settings
from detector.reading import engine_name
from ingest.coverage import Coverage
from ingest.sidecar_inputs import matching
from ingest.sidecar_reader import GrowingReader
from ingest.sources.base import RawRequest
from ingest.tail.cri import RuntimeLines
from ingest.tail.pipe import is_fifo
from ingest.tail.siblings import is_rotated
from ingest.tail.splitter import Line, Splitter
from ingest.tenancy import Tenancy

TAIL_BYTES: Final = 8 * 2**20
"""How much of a log is read: some hundred requests with 4,000 ids each, and a second or two."""

STDIN: Final = "-"


@dataclass(slots=True)
class LogEvidence:
    """One log. `problem` says why it could not be read; counts are then empty."""

    path: str
    problem: str = ""
    is_pipe: bool = False
    is_known: bool = False
    is_whole: bool = True
    """False if the log is longer than what was read: its first requests may lack their beginning"""
    size: int = 0
    written_ms: int = 0
    newest_ms: int | None = None
    """The latest time that a request tells."""
    lines: int = 0
    requests: int = 0
    with_tenant: int = 0
    coverage: Coverage = field(default_factory=Coverage)


def logs_of(settings: Settings) -> list[str]:
    """Return the logs that a sidecar with these settings follows now; patterns may match none."""
    found: dict[str, None] = {}
    for pattern in settings.sidecar.files:
        if pattern != STDIN and glob.has_magic(pattern):
            found.update(dict.fromkeys(matching(pattern)[0]))
        else:
            found[pattern] = None
    live = [Path(name) for name in found if name != STDIN]
    return [name for name in found if name == STDIN or not is_rotated(Path(name), live)]


def look_at(path: str, settings: Settings) -> LogEvidence:
    """Read the end of one log. A pipe is left alone: what is read from it is gone for others."""
    evidence = LogEvidence(path)
    if path == STDIN or is_fifo(Path(path)):
        evidence.is_pipe = True
        return evidence
    try:
        with Path(path).open("rb") as file:
            evidence.size = file.seek(0, 2)
            evidence.written_ms = int(Path(path).stat().st_mtime * 1000)
            begin = max(0, evidence.size - TAIL_BYTES)
            file.seek(begin)
            block = file.read(TAIL_BYTES)
    except OSError as error:
        evidence.problem = (error.strerror or "it cannot be read").lower()
        return evidence
    evidence.is_whole = begin == 0
    if begin:
        block = block.partition(b"\n")[2]
    _read(evidence, block, settings)
    return evidence


def _read(evidence: LogEvidence, block: bytes, settings: Settings) -> None:
    coverage = evidence.coverage
    reader = GrowingReader(
        settings.sidecar,
        settings.sources.jsonl,
        engine=settings.sidecar.engine or engine_name(evidence.path),
        coverage=coverage,
        now=lambda: datetime.fromtimestamp(evidence.written_ms / 1000, UTC),
    )
    runtime = RuntimeLines(coverage=coverage)
    lines = Splitter(0, coverage=coverage).feed(block if block.endswith(b"\n") else block + b"\n")
    evidence.lines = len(lines)
    whole = [line for one in lines if (line := runtime.take(one)) is not None]
    tenancy = Tenancy(settings.tenancy)
    for request in _requests(reader, whole):
        evidence.requests += 1
        evidence.with_tenant += tenancy.tenant(request) is not None
        told = request.started_at_ms if request.ended_at_ms is None else request.ended_at_ms
        if evidence.newest_ms is None or told > evidence.newest_ms:
            evidence.newest_ms = told
    evidence.is_known = reader.is_known


def _requests(reader: GrowingReader, lines: list[Line]) -> Iterator[RawRequest]:
    yield from reader.read(lines)
    yield from reader.end(is_read_again=True)  # the log goes on
