"""Minutes of sending in simulated time: incidents change, receivers misbehave, lanes step.

The receivers, their answers and the store are real; only the clock is not.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from exporters.incidents.model import Change, ChangeKind
from exporters.outputs.contract import Output
from exporters.outputs.settings import OutputSettings, WebhookSettings
from exporters.outputs.webhook import WebhookOutput
from exporters.sending.announce import announce, announce_gone
from exporters.sending.lane import Lane
from exporters.store import outbox
from exporters.store.database import Database
from tests.alerts.kit import NOW_MS, Clock, change, keep
from tests.fakes.receiver import Manner, Receiver

GIVE_UP_MS = 3 * 86_400_000

LIFE = (
    ChangeKind.OPENED,
    ChangeKind.SEVERITY_RAISED,
    ChangeKind.ACKNOWLEDGED,
    ChangeKind.RESOLVED,
    ChangeKind.REOPENED,
    ChangeKind.RESOLVED,
)


def hook(name: str, to: Receiver, *, timeout_ms: int = 2_000) -> WebhookSettings:
    """Return the settings of an output to a receiver of this machine."""
    return WebhookSettings(
        kind="webhook",
        name=name,
        url=to.url,
        allow_private=True,
        timeout_ms=timeout_ms,
        most_per_minute=10_000,
    )


def lane(
    output: Output,
    database: Database,
    clock: Clock,
    *,
    all_outputs: list[OutputSettings],
    per_minute: int = 10_000,
    seed: int = 1,
) -> Lane:
    """Return a lane by the simulated clock."""
    return Lane(
        output,
        database,
        per_minute=per_minute,
        give_up_ms=GIVE_UP_MS,
        now_ms=clock,
        chance=random.Random(seed).random,
        on_gone=lambda connection, gone, at_ms: announce_gone(
            connection, gone, outputs=all_outputs, at_ms=at_ms
        ),
    )


@dataclass
class Simulation:
    """Outputs by name, their receivers, and what happens when.

    `manners` gives, for an output, from which second on its receiver behaves how. `at` are things
    done at a second of the simulation.
    """

    database: Database
    receivers: Mapping[str, Receiver]
    manners: Mapping[str, tuple[tuple[int, Manner], ...]] = field(default_factory=dict)
    at: dict[int, Callable[[], None]] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    told: list[Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settings: list[OutputSettings] = [
            hook(name, receiver) for name, receiver in self.receivers.items()
        ]
        self.lanes: dict[str, Lane] = {}
        self._again_ms: dict[str, int] = {}
        for name in self.receivers:
            self.restart(name)

    def restart(self, name: str) -> None:
        """Begin an output anew, as a process that was killed does."""
        made = WebhookOutput(hook(name, self.receivers[name]))
        self.lanes[name] = lane(made, self.database, self.clock, all_outputs=self.settings)
        self._again_ms[name] = 0

    def tell(self, *changes: Change) -> None:
        """Let incidents change now."""
        with self.database.write() as connection:
            keep(connection, changes)
            announce(connection, changes, outputs=self.settings)
        self.told += changes
        self._again_ms = dict.fromkeys(self._again_ms, 0)

    def run(self, seconds: int, *, incidents: int, every_s: int) -> None:
        """Let time pass; every so often the next of the incidents changes, round and round."""
        lives = {f"inc-{number}": list(LIFE) for number in range(incidents)}
        versions = dict.fromkeys(lives, 0)
        turn = 0
        for second in range(seconds):
            self._behave(second)
            if second in self.at:
                self.at[second]()
            if second % every_s == 0:
                name = f"inc-{turn % incidents}"
                turn += 1
                if lives[name]:
                    versions[name] += 1
                    kind = lives[name].pop(0)
                    self.tell(change(kind, name, version=versions[name], at_ms=self.clock()))
            self._second()

    def drain(self, *, most_s: int) -> None:
        """Let time pass until nothing is open."""
        for _ in range(most_s):
            self._second()
            if not self.open_rows():
                return

    def open_rows(self) -> int:
        """Return how many rows of the outbox are open."""
        with self.database.read() as connection:
            counted = outbox.counts(connection).values()
        return sum(found.get(state, 0) for found in counted for state in outbox.OPEN)

    def _behave(self, second: int) -> None:
        for name, manners in self.manners.items():
            for since, manner in manners:
                if since == second:
                    self.receivers[name].behave(manner)

    def _second(self) -> None:
        """One second: every lane steps until it has nothing to do before the next."""
        until_ms = self.clock() + 1_000
        begun_ms = self.clock()
        for name, one in self.lanes.items():
            self.clock.at_ms = max(begun_ms, self._again_ms[name])
            while self.clock() < until_ms:
                self._again_ms[name] = one.step()
                self.clock.at_ms = max(self._again_ms[name], self.clock())
        self.clock.at_ms = until_ms


def second_of(at_ms: int) -> float:
    """Return the second of the simulation."""
    return (at_ms - NOW_MS) / 1_000
