"""One output on a real store, with its lane and a clock that is set: what tests of lanes share."""

from collections import deque

from exporters.incidents.model import Change
from exporters.outputs.contract import Delivered, Outcome
from exporters.outputs.notification import Kind, Notification
from exporters.outputs.settings import StdoutSettings
from exporters.sending.announce import announce
from exporters.sending.lane import Lane
from exporters.store import journal, silences
from exporters.store.database import Database
from exporters.store.journal import Ended
from exporters.store.silences import Silence, Silenced
from tests.alerts import kit
from tests.alerts.kit import Clock
from tests.alerts.simulation import lane

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


class Listed:
    """An output that answers as it was told to, and delivers when nothing is left of that."""

    name = "listed"

    def __init__(self, resend_ms: int | None = None) -> None:
        self.resend_ms = resend_ms
        self.answers: deque[Outcome] = deque()
        self.got: list[Notification] = []

    def send(self, notification: Notification, *, at_ms: int) -> Outcome:
        assert at_ms > 0
        self.got.append(notification)
        return self.answers.popleft() if self.answers else Delivered("ok")

    def close(self) -> None:
        """Nothing is open."""

    def kinds(self) -> list[Kind]:
        return [one.kind for one in self.got]


class Desk:
    """A store, an output, its lane, and the clock of both."""

    def __init__(
        self, database: Database, *, per_minute: int = 1_000, resend_ms: int | None = None
    ) -> None:
        self.database = database
        self.clock = Clock()
        self.output = Listed(resend_ms)
        self.lane: Lane = lane(
            self.output, database, self.clock, all_outputs=[], per_minute=per_minute
        )

    def tell(self, *changes: Change, to_it: bool = True) -> None:
        """Let incidents change; without `to_it` the output is out of the configuration."""
        settings = StdoutSettings(kind="stdout", name="listed")
        with self.database.write() as connection:
            kit.keep(connection, changes)
            announce(connection, changes, outputs=[settings] if to_it else [])

    def run(self, until_ms: int | None = None) -> None:
        """Let time pass to an instant, or do what is to be done now."""
        end_ms = self.clock() if until_ms is None else until_ms
        while self.clock() <= end_ms:
            again_ms = self.lane.step()
            if again_ms > end_ms:
                break
            self.clock.at_ms = max(again_ms, self.clock())
        self.clock.at_ms = end_ms

    def silence(self, minutes: int, **about: tuple[str, ...]) -> None:
        made = Silence(
            id=f"s-{len(about)}-{minutes}",
            about=Silenced(**about),
            starts_at_ms=self.clock(),
            ends_at_ms=self.clock() + minutes * MINUTE_MS,
            by="ada",
            comment="known",
        )
        with self.database.write() as connection:
            silences.add(connection, made)

    def outcomes(self) -> list[Ended]:
        return [line.outcome for line in self.lines()]

    def lines(self) -> list[journal.Attempt]:
        with self.database.read() as connection:
            return journal.newest(connection, limit=1_000)[::-1]
