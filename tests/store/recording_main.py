"""Records a fixed stream into a SQLite store, a little at a time, and tells every transaction.

`python -m tests.store.recording_main FILE` goes on where the store says. Its clock stands still, so
that two stores with the same stream are the same to the last byte of a row.
"""

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection

from detector.api import recorder as recording
from detector.finding import Severity
from exporters.incidents.model import Change
from exporters.outputs.settings import StdoutSettings
from exporters.sending.announce import announce
from exporters.store.database import open_store
from exporters.store.settings import StoreSettings
from tests.store.made import found
from tests.store.topics import Results, request

FINDINGS = 240
POOLS = "abcd"


def stream() -> Results:
    """Return the broker with everything in it: findings, some twice, and rows between them."""
    results = Results()
    for number in range(FINDINGS):
        pool = POOLS[number % len(POOLS)]
        severity = Severity.CRITICAL if number % 50 == 0 else Severity.HIGH
        one = found(f"f{number}", number * 7, pool=pool, severity=severity)
        results.send(*([one, one] if number % 3 == 0 else [one]))
        results.send_rows(request(f"r{number}", number, kv_pool=pool))
    return results


def record(path: Path) -> None:
    """Record what is left, and tell how far it is after each transaction."""
    recording.ROWS_PER_TRANSACTION = 3  # type: ignore[misc] # so that a kill hits between them
    outputs = [StdoutSettings(kind="stdout", name="all")]
    with closing(open_store(StoreSettings(url=f"sqlite:///{path}"))) as database:

        def told(connection: Connection, changes: Sequence[Change]) -> None:
            announce(connection, changes, outputs=outputs)

        recorder = stream().recorder(database, announce=told)
        record_batch = recorder._record

        def telling(batch: Sequence[recording.Opened]) -> tuple[Change, ...]:
            changes = record_batch(batch)
            print(sum(recorder.positions.values()), flush=True)
            return changes

        recorder._record = telling  # type: ignore[method-assign]
        while any(recorder.lag().values()):
            recorder.turn(0)


if __name__ == "__main__":
    record(Path(sys.argv[1]))
