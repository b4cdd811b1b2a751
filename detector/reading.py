"""From files to hashed sequences: opens every file, picks its reader, merges them by time."""

import heapq
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from detector.config.root import Settings
from detector.errors import UsageError
from detector.model import Sequence
from detector.sketch.token_table import TokenTable
from ingest.chat_template import ChatTemplate
from ingest.coverage import Coverage
from ingest.door import Door
from ingest.names import made_name
from ingest.schema_records import RequestRow
from ingest.sources.base import RawRequest, Source
from ingest.sources.detect import HEAD_LINES, LogFormat, detect_format
from ingest.sources.jsonl import JsonlLog
from ingest.sources.line_ends import as_they_come, end_with_cr, without_cr
from ingest.sources.lines import Lines, open_lines
from ingest.sources.sglang import SglangLog
from ingest.sources.vllm import VllmLog
from ingest.sources.vllm_year import FirstYear, year_by_clock, year_of
from ingest.tail.cri import RuntimeLines
from ingest.tail.splitter import Line
from ingest.tenancy import Tenancy

OnProgress = Callable[[float, str], None]

PROGRESS_EVERY = 64
"""Requests between two reports of progress."""

_SUFFIXES = re.compile(r"(\.(log|txt|json|jsonl|gz|zst|zstd|vllm|sglang|\d+))+$")


class Reading:
    """Reads files in the order of event time; `coverage` tells what they could not show."""

    def __init__(self, settings: Settings, table: TokenTable) -> None:
        self.coverage = Coverage()
        self.requests = 0
        self._settings = settings
        self._door = Door(
            table, Tenancy(settings.tenancy), ChatTemplate(settings.template), self.coverage
        )

    def sequences(
        self,
        paths: Iterable[str],
        *,
        log_format: str = "auto",
        engine: str | None = None,
        kv_pool: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> Iterator[Sequence]:
        """Yield the sequences of all files; see `records`, whose rows are left out."""
        records = self.records(
            paths, log_format=log_format, engine=engine, kv_pool=kv_pool, on_progress=on_progress
        )
        return (record for record in records if isinstance(record, Sequence))

    def records(
        self,
        paths: Iterable[str],
        *,
        log_format: str = "auto",
        engine: str | None = None,
        kv_pool: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> Iterator[Sequence | RequestRow]:
        """Yield what all files hold, merged by the time the requests ended.

        That is the sequences of a request, or its row when the log has token ids of neither side.
        Raises InputError for a file that cannot be read or recognised, UsageError for an unknown
        format; whatever is wrong with single records is counted in `coverage`.
        """
        opened = [open_lines(path, coverage=self.coverage) for path in paths]
        try:
            sources = [self._source(lines, log_format, engine) for lines in opened]
            for request in heapq.merge(*sources, key=_instant):
                if on_progress is not None and self.requests % PROGRESS_EVERY == 0:
                    on_progress(_share(opened), "reading")
                self.requests += 1
                if kv_pool is not None:
                    request.kv_pool = request.kv_pool or kv_pool
                yield from self._admitted(request)
        finally:
            for lines in opened:
                lines.close()

    def _admitted(self, request: RawRequest) -> Iterator[Sequence | RequestRow]:
        if request.prompt_ids is not None or request.response_ids is not None:
            yield from self._door.sequences(request)
        elif (row := self._door.row(request)) is not None:
            yield row

    def _source(self, lines: Lines, log_format: str, engine: str | None) -> Source:
        if log_format not in ("auto", *LogFormat):
            known = ", ".join(("auto", *LogFormat))
            raise UsageError(f"unknown format {log_format!r}", hint=f"one of {known}")
        if log_format == "auto":
            log_format = detect_format(_head(lines), where=lines.name, lost=lines.lost)
        whole = _whole(lines, self.coverage)
        if log_format == LogFormat.JSONL:
            fields = self._settings.sources.jsonl
            return JsonlLog(whole, engine=engine, coverage=self.coverage, fields=fields)
        name = engine or engine_name(lines.name)
        if log_format == LogFormat.SGLANG:
            return SglangLog(whole, engine=name, coverage=self.coverage)
        if lines.total_bytes is None:
            whole = as_they_come(whole, lines, self.coverage)
        elif _ends_with_cr(lines.name):
            whole = without_cr(whole)
        return VllmLog(whole, engine=name, coverage=self.coverage, year=_year(lines))


def engine_name(path: str) -> str:
    """Return the engine that a log file is of: its name without rotation and format suffixes."""
    name = Path(path).name
    return "stdin" if path == "-" else made_name(_SUFFIXES.sub("", name) or name)


def _head(lines: Lines) -> list[bytes]:
    """Return the first lines of a log, and the begin of those of which only pieces are there."""
    runtime = RuntimeLines(coverage=Coverage())
    taken = [runtime.take(line) for line in enumerate(lines.head(HEAD_LINES))]
    return [line[1] for line in taken if line is not None] + runtime.unfinished()


def _whole(lines: Iterable[Line], coverage: Coverage) -> Iterator[Line]:
    """Yield lines without the prefix of a container runtime; what it cut is put together.

    A line whose last piece is missing is counted.
    """
    runtime = RuntimeLines(coverage=coverage)
    for one in lines:
        line = runtime.take(one)
        if line is not None:
            yield line
    if (first := runtime.oldest_line()) is not None:
        coverage.broken("truncated_stream", first)


def _ends_with_cr(path: str) -> bool:
    with open_lines(path, coverage=Coverage()) as lines:
        return end_with_cr(_whole(lines, Coverage()), lines)


def _instant(request: RawRequest) -> int:
    return request.started_at_ms if request.ended_at_ms is None else request.ended_at_ms


def _share(opened: list[Lines]) -> float:
    total = sum(lines.total_bytes or 0 for lines in opened)
    return min(sum(lines.bytes_read for lines in opened) / total, 1.0) if total else 0.0


def _year(lines: Lines) -> int | FirstYear:
    """Return the year of a vLLM text log's first line, which names none; a pipe's by the clock."""
    if lines.total_bytes is None:
        return year_by_clock
    written = datetime.fromtimestamp(Path(lines.name).stat().st_mtime, UTC)
    return year_of(lines.head(HEAD_LINES), written=written)
