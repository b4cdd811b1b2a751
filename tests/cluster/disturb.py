"""What goes wrong during a soak: kills, a disk that is full, slow receivers, clocks that err."""

import time
from collections.abc import Callable
from random import Random
from typing import Final

from tests.chaos.small_disk import SmallDisk
from tests.cluster.cluster import API, WORKERS, Cluster
from tests.cluster.site import ENGINES
from tests.cluster.turns import Turns
from tests.fakes.receiver import Manner
from tests.streams.process import until

DOWN_S: Final = (0.5, 4.0)
"""How long what was killed stays away: a restart by whoever watches it."""

SKEW_S: Final = (-20.0, 20.0)
"""Within the minute that records may be early or late."""

FULL_S: Final = 60.0
"""A broker under load notices a full disk within a second; one that does not was not disturbed."""

SLOW: Final[tuple[Manner, ...]] = ("slow", "fails", "busy", "down", "breaks_off")

PROCESSES: Final = (*WORKERS, API, *ENGINES, *(f"sidecar-{engine}" for engine in ENGINES))

SPARED: Final = (WORKERS[-1], API, [*ENGINES][-1], f"sidecar-{[*ENGINES][-1]}")
"""One of each kind: killed once, at the very beginning, so that its memory can be judged."""


class Disturber:
    """Disturbs one thing after the other; `done` says what, in order. The broker is on `disk`."""

    def __init__(self, made: Cluster, disk: SmallDisk, rng: Random) -> None:
        self.done: list[str] = []
        self._made, self._disk, self._rng = made, disk, rng
        self._turns = Turns([*PROCESSES, *KINDS], once=SPARED, rng=rng)

    def next(self) -> str:
        """Disturb something; every kind comes before one comes again."""
        name = self._turns.next()
        said = KINDS[name](self) if name in KINDS else self._process_is_killed(name)
        self.done.append(said)
        return said

    def calm(self) -> None:
        """Let receivers and clocks be right again."""
        self._made.hook.behave("takes")
        for engine in ENGINES:
            self._made.processes[engine].order("skew 0")

    def _process_is_killed(self, name: str) -> str:
        one = self._made.processes[name]
        self._away(one.kill, one.start)
        one.await_ready()
        return f"{name} killed"

    def _broker_stops(self) -> str:
        self._away(self._made.kafka.stop, self._made.kafka.start)
        return "broker restarted"

    def _broker_is_killed(self) -> str:
        self._away(self._made.kafka.kill, self._made.kafka.start)
        return "broker killed"

    def _disk_is_full(self) -> str:
        """Leave the broker no room until it says so and for some seconds more, then start it."""
        log = self._made.kafka.log_file
        seen = log.stat().st_size
        self._disk.fill()
        try:
            until(lambda: b"No space left" in log.read_bytes()[seen:], FULL_S)
            self._wait()
        finally:
            self._disk.free()
        self._away(self._made.kafka.kill, self._made.kafka.start)
        return "disk of the broker full"

    def _store_stops(self) -> str:
        self._away(self._made.postgres.stop, self._made.postgres.start)
        return "store restarted"

    def _store_is_killed(self) -> str:
        self._away(self._made.postgres.kill, self._made.postgres.start)
        return "store killed"

    def _prometheus_is_killed(self) -> str:
        self._away(self._made.prometheus.service.kill, self._made.prometheus.service.start)
        return "Prometheus killed"

    def _alertmanager_is_killed(self) -> str:
        self._away(self._made.alertmanager.service.kill, self._made.alertmanager.service.start)
        return "Alertmanager killed"

    def _receiver_is_slow(self) -> str:
        manner = self._rng.choice(SLOW)
        self._away(lambda: self._made.hook.behave(manner), lambda: self._made.hook.behave("takes"))
        return f"receiver {manner.replace('_', ' ')}"

    def _clock_errs(self) -> str:
        engine, seconds = self._rng.choice(sorted(ENGINES)), self._rng.uniform(*SKEW_S)
        self._made.processes[engine].order(f"skew {seconds:.1f}")
        return f"clock of {engine} {seconds:+.1f} s"

    def _away(self, end: Callable[[], None], begin: Callable[[], None]) -> None:
        end()
        self._wait()
        begin()

    def _wait(self) -> None:
        time.sleep(self._rng.uniform(*DOWN_S))


KINDS: Final[dict[str, Callable[[Disturber], str]]] = {
    "the broker stops": Disturber._broker_stops,
    "the broker is killed": Disturber._broker_is_killed,
    "the disk of the broker is full": Disturber._disk_is_full,
    "the database stops": Disturber._store_stops,
    "the database is killed": Disturber._store_is_killed,
    "Prometheus is killed": Disturber._prometheus_is_killed,
    "Alertmanager is killed": Disturber._alertmanager_is_killed,
    "the receiver is slow": Disturber._receiver_is_slow,
    "the clock of an engine errs": Disturber._clock_errs,
}
"""What can go wrong beside kills of our own processes."""
