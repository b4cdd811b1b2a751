"""Has the sources of contradictions looked for, and keeps what comes of it beside the findings.

What is to be looked back for is asked of the store, so a restart forgets nothing; several apis may
do it twice, and the first to write is kept.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from detector.alerting import wall_ms
from detector.config.root import Settings
from detector.errors import StoreError
from detector.trace.look_back import MAX_WAITING, RULES, LookBack, LookedBack
from exporters.store import look_backs
from exporters.store.database import Database
from exporters.store.look_backs import Source, StoredLookBack
from ingest.broker import Reader
from ingest.key_rotation import RotatingKeys
from ingest.sealing import KeyRing

LOOK_S: Final = 5.0
"""How often new findings are asked for: a look-back takes longer."""

CLOSE_S: Final = 5.0
"""How long an end waits for the look-back in hand; the next start does it again."""

_log = logging.getLogger(__name__)


class LookingBack:
    """Hands findings on to be looked back for, and writes what comes; turned by the loop of an api.

    `now_ms` is wall time. Findings older than `trace.since_ms` are left: what they rest on is gone.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        *,
        open_reader: Callable[[], Reader],
        ring: Callable[[], KeyRing],
        now_ms: Callable[[], int] = wall_ms,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._since_ms = settings.trace.since_ms
        self._now_ms = now_ms
        self._clock = clock
        self._next_s = clock()
        self._asked: set[str] = set()
        self.look_back = LookBack(settings, open_reader=open_reader, ring=ring, tell=self.tell)

    def turn(self) -> None:
        """Ask for what is new, if it is time; a store that is away is asked again later."""
        if self._clock() < self._next_s:
            return
        self._next_s = self._clock() + LOOK_S
        try:
            with self._database.read() as connection:
                found = look_backs.not_looked_back(
                    connection,
                    RULES,
                    since_ms=self._now_ms() - self._since_ms,
                    limit=MAX_WAITING,
                )
        except StoreError:
            return
        for finding in found:
            if finding.id not in self._asked and self.look_back.ask(finding):
                self._asked.add(finding.id)

    def tell(self, told: LookedBack) -> None:
        """Write what came of one finding; called from the thread that looks back."""
        try:
            with self._database.write() as connection:
                look_backs.put(connection, _stored(told, self._now_ms()))
        except StoreError as error:
            _log.warning("what was looked back for is lost, and done again: %s", error)
        self._asked.discard(told.finding_id)


@contextmanager
def looking_back(
    settings: Settings, database: Database, *, open_reader: Callable[[], Reader]
) -> Iterator[Callable[[], None]]:
    """Look back for the time of a `with` block; give what is to be called in every turn of a loop.

    Without a key file nothing can be opened, and nothing is looked back for. Raises KeyFileError
    for one that cannot be used.
    """
    if settings.key_file is None:
        yield lambda: None
        return
    keys = RotatingKeys(settings.key_file, settings.sealing, now_s=time.monotonic())
    working = LookingBack(
        settings, database, open_reader=open_reader, ring=lambda: keys.ring(time.monotonic())
    )
    working.look_back.start()
    try:
        yield working.turn
    finally:
        working.look_back.close(CLOSE_S)


def _stored(told: LookedBack, at_ms: int) -> StoredLookBack:
    traced = told.traced
    if traced is None:
        return StoredLookBack(finding_id=told.finding_id, at_ms=at_ms, problem=told.problem)
    return StoredLookBack(
        finding_id=told.finding_id,
        at_ms=at_ms,
        sources=tuple(
            Source(
                party=one.party,
                engine=one.engine,
                confidence=one.confidence.value,
                unexplained_tokens=one.unexplained_tokens,
                runs=one.runs,
            )
            for one in traced.sources
        ),
        sequences=traced.scanned.sequences,
        tokens=traced.scanned.tokens,
        is_complete=traced.is_complete,
    )
