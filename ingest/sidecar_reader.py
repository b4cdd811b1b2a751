"""The reader of a log that grows: its format is found out from the lines, as they come."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from detector.errors import InputError
from ingest.coverage import Coverage
from ingest.sidecar_settings import SidecarSettings
from ingest.sources.base import RawRequest, Source
from ingest.sources.detect import HEAD_LINES, LogFormat, detect_format
from ingest.sources.field_map import FieldMap
from ingest.sources.jsonl import JsonlLog
from ingest.sources.sglang import SglangLog
from ingest.sources.vllm import VllmLog
from ingest.sources.vllm_year import year_of
from ingest.tail.splitter import Line


class Now(Protocol):
    """Gives the time of day, with its zone."""

    def __call__(self) -> datetime:
        """Return it."""
        ...


class GrowingReader:
    """Reads lines of one log into requests, in the format that the settings or the lines say.

    Lines that come before the format is known are held, up to HEAD_LINES of them; older ones are
    passed over and counted, since no reader would know them. `version` is what an earlier reader of
    the log has learned.
    """

    def __init__(
        self,
        settings: SidecarSettings,
        fields: FieldMap,
        *,
        engine: str,
        coverage: Coverage,
        now: Now,
        version: tuple[int, int] | None = None,
    ) -> None:
        self._settings = settings
        self._fields = fields
        self._engine = engine
        self._coverage = coverage
        self._now = now
        self._version = version
        self._held: list[Line] = []
        self._reader: Source | None = None

    @property
    def is_known(self) -> bool:
        """True once the format is known."""
        return self._reader is not None

    @property
    def version(self) -> tuple[int, int] | None:
        """The engine's version if how its log is read depends on it."""
        return self._reader.version if isinstance(self._reader, VllmLog) else self._version

    def read(self, lines: Sequence[Line]) -> Iterable[RawRequest]:
        """Yield the requests that lines end."""
        if self._reader is None:
            lines = self._look_at(lines)
        if self._reader is not None:
            for at, content in lines:
                yield from self._reader.take(at, content)

    def end(self, *, is_read_again: bool) -> Iterable[RawRequest]:
        """Yield what is unfinished; see `Source.end`."""
        return () if self._reader is None else self._reader.end(is_read_again=is_read_again)

    def oldest_line(self) -> int | None:
        """Return the position of the first line that is still needed."""
        if self._held:
            return self._held[0][0]
        return None if self._reader is None else self._reader.oldest_line()

    def _look_at(self, lines: Sequence[Line]) -> list[Line]:
        """Hold lines until they tell the format; return those held once they do."""
        self._held += lines
        if not self._held:
            return []
        first = [content for _, content in self._held[-HEAD_LINES:]]
        try:
            found = (
                detect_format(first)
                if self._settings.format == "auto"
                else LogFormat(self._settings.format)
            )
        except InputError:
            for _ in self._held[:-HEAD_LINES]:
                self._coverage.ignored("unknown_format")
            del self._held[:-HEAD_LINES]
            return []
        self._reader = self._made(found, first)
        held, self._held = self._held, []
        return held

    def _made(self, found: LogFormat, first: Sequence[bytes]) -> Source:
        settings = self._settings
        if found == LogFormat.JSONL:
            return JsonlLog((), engine=self._engine, coverage=self._coverage, fields=self._fields)
        bounds = {
            "max_unfinished": settings.unfinished_requests,
            "max_unfinished_ms": settings.unfinished_ms,
            "max_unfinished_ids": settings.unfinished_tokens,
        }
        if found == LogFormat.SGLANG:
            return SglangLog((), engine=self._engine, coverage=self._coverage, **bounds)
        return VllmLog(
            (),
            engine=self._engine,
            coverage=self._coverage,
            year=year_of(first, written=self._now()),
            version=self._version,
            **bounds,
        )
