"""What was pushed, on its way into the sidecar: hashed at once, bounded, and counted.

The server's thread puts in, the sidecar's takes out. What is here is in memory only: a process that
is killed loses what it took and had not sent, at most `waiting_bytes` and what is being packed.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from detector.errors import RecordError
from detector.sketch.token_table import TokenTable
from ingest.coverage import Coverage
from ingest.door import Door
from ingest.push.schema import PushedRequest, raw
from ingest.schema import check
from ingest.schema_records import RequestRow, RuntimeSample, SequenceRecord
from ingest.schema_sequence import to_record

RECORD_BYTES: Final = 2_048
"""What a record costs besides its hashes: names, numbers and the object."""

MakeDoor = Callable[[TokenTable, Coverage], Door]

Waiting = SequenceRecord | RequestRow | RuntimeSample


class Taken(NamedTuple):
    """What became of a push: requests or samples, and why some were not taken."""

    accepted: int
    unmapped: int
    refused: dict[str, int]


class PushIntake:
    """Takes pushes from any thread and gives them to the sidecar's loop as its feed.

    `table` gives the token table of the moment and is asked under a lock. `holds` says whether the
    sidecar can take no more right now; then everything waits here, until `is_full`.
    """

    def __init__(
        self,
        *,
        table: Callable[[], TokenTable],
        door: MakeDoor,
        most_bytes: int,
        holds: Callable[[], bool] = lambda: False,
    ) -> None:
        self.coverage = Coverage(kind="push")
        self._table = table
        self._make_door = door
        self._door: Door | None = None
        self._hashed_with: TokenTable | None = None
        self._most_bytes = most_bytes
        self._holds = holds
        self._lock = threading.Lock()
        self._waiting: deque[Waiting] = deque()
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """True while nothing more should be pushed."""
        return self._bytes >= self._most_bytes

    @property
    def waiting_bytes(self) -> int:
        """What is held now."""
        return self._bytes

    def requests(self, pushed: Iterable[PushedRequest]) -> Taken:
        """Hash requests and keep their sequences; a request without ids is a row."""
        with self._lock:
            broken = dict(self.coverage.broken_by_reason)
            unmapped = self.coverage.unmapped_tenants
            accepted = sum(self._request(one) for one in pushed)
            refused = {
                reason: count - broken.get(reason, 0)
                for reason, count in self.coverage.broken_by_reason.items()
                if count > broken.get(reason, 0)
            }
            return Taken(accepted, self.coverage.unmapped_tenants - unmapped, refused)

    def samples(self, pushed: Iterable[RuntimeSample]) -> Taken:
        """Check samples and keep them."""
        accepted, refused = 0, dict[str, int]()
        with self._lock:
            for sample in pushed:
                try:
                    check(sample)
                except RecordError as error:
                    refused[error.reason] = refused.get(error.reason, 0) + 1
                    continue
                self._keep(sample)
                accepted += 1
        return Taken(accepted, 0, refused)

    def feed(self, _now_s: float) -> list[Waiting]:
        """Give everything to the sidecar, unless it can take no more."""
        if self._holds():
            return []
        with self._lock:
            given = list(self._waiting)
            self._waiting.clear()
            self._bytes = 0
        return given

    def _request(self, pushed: PushedRequest) -> bool:
        request = raw(pushed)
        self.coverage.read(request)
        door = self._current_door()
        if request.prompt_ids is None and request.response_ids is None:
            row = door.row(request)
            if row is not None:
                self._keep(row)
            return row is not None
        made = door.sequences(request)
        for sequence in made:
            self._keep(to_record(sequence))
        return bool(made)

    def _current_door(self) -> Door:
        table = self._table()
        if self._door is None or table is not self._hashed_with:
            self._door, self._hashed_with = self._make_door(table, self.coverage), table
        return self._door

    def _keep(self, record: Waiting) -> None:
        self._waiting.append(record)
        hashes = len(record.token_hashes) if isinstance(record, SequenceRecord) else 0
        self._bytes += hashes + RECORD_BYTES
