"""The audit files of KV leases as a sidecar follows them: every line is an engine event."""

from collections.abc import Iterable, Sequence

from detector.errors import RecordError
from ingest.coverage import Coverage
from ingest.schema import Encoding, decode
from ingest.schema_records import EngineEvent
from ingest.sources.base import RawRequest
from ingest.tail.splitter import Line


class AuditLog:
    """Makes the events; as a reader of requests it finds none. Broken lines are counted."""

    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage

    @property
    def is_known(self) -> bool:
        """True: the format is said by the settings."""
        return True

    @property
    def version(self) -> None:
        """None: no engine wrote it."""
        return None

    def event(self, line: bytes) -> EngineEvent | None:
        """Return the event of a line, None for an empty or broken one."""
        if not line.strip():
            return None
        try:
            return decode(EngineEvent, line, Encoding.JSON)
        except RecordError as error:
            self._coverage.broken(error.reason)
            return None

    def read(self, lines: Sequence[Line]) -> Iterable[RawRequest]:
        """Return no requests."""
        del lines
        return ()

    def end(self, *, is_read_again: bool) -> Iterable[RawRequest]:  # noqa: ARG002 - nothing is held
        """Return no requests."""
        return ()

    def oldest_line(self) -> None:
        """Return None: no line is needed once it is read."""
