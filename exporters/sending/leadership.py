"""Which of several processes on one store sends: the one that holds a lease."""

from typing import Final

from exporters.store import lease
from exporters.store.database import Database

NAME: Final = "sending"

LEASE_MS: Final = 30_000
"""How long a process that died is waited for. Renewed three times within it."""

RENEW_MS: Final = LEASE_MS // 3

MARGIN_MS: Final = 16_000
"""What must be left of the lease when a sending begins: the longest time-out of an output, and a
second to write down its outcome and for clocks that differ."""


class Leadership:
    """The part that a process has in it; `holder` is its name among the processes."""

    def __init__(self, database: Database, holder: str) -> None:
        self._database = database
        self._holder = holder
        self._until_ms = 0

    def renew(self, *, now_ms: int) -> bool:
        """Take or prolong the lease; false while another process has it. Raises StoreError."""
        until_ms = now_ms + LEASE_MS
        with self._database.write() as connection:
            taken = lease.take(connection, NAME, self._holder, now_ms=now_ms, until_ms=until_ms)
        self._until_ms = until_ms if taken else 0
        return taken

    def may_send(self, *, now_ms: int) -> bool:
        """Whether a sending that begins now ends while the lease still holds."""
        return now_ms + MARGIN_MS <= self._until_ms

    def let_go(self) -> None:
        """End the lease, so that another process need not wait. Raises StoreError."""
        self._until_ms = 0
        with self._database.write() as connection:
            lease.let_go(connection, NAME, self._holder)
