"""What goes wrong during a soak: kills, a broker that restarts, slow receivers, clocks that err."""

import time
from collections.abc import Callable
from random import Random
from typing import Final

from tests.cluster.cluster import API, WORKERS, Cluster
from tests.cluster.site import ENGINES
from tests.fakes.receiver import Manner

DOWN_S: Final = (0.5, 4.0)
"""How long what was killed stays away: a restart by whoever watches it."""

SKEW_S: Final = (-20.0, 20.0)
"""Within the minute that records may be early or late."""

SLOW: Final[tuple[Manner, ...]] = ("slow", "fails", "busy", "down", "breaks_off")


class Disturber:
    """Disturbs one thing after the other; `done` says what, in order."""

    def __init__(self, made: Cluster, rng: Random) -> None:
        self.done: list[str] = []
        self._made, self._rng = made, rng
        killed = (*WORKERS, API, *ENGINES, *(f"sidecar-{engine}" for engine in ENGINES))
        self._kinds: list[Callable[[], str]] = [
            *(lambda name=name: self._kill(name) for name in killed),
            self._broker_stops,
            self._broker_is_killed,
            self._store_restarts,
            self._receiver_is_slow,
            self._clock_errs,
        ]
        self._left: list[Callable[[], str]] = []

    def next(self) -> str:
        """Disturb something; every kind comes before one comes again."""
        if not self._left:
            self._left = list(self._kinds)
            self._rng.shuffle(self._left)
        said = self._left.pop()()
        self.done.append(said)
        return said

    def calm(self) -> None:
        """Let receivers and clocks be right again."""
        self._made.hook.behave("takes")
        for engine in ENGINES:
            self._made.processes[engine].order("skew 0")

    def _kill(self, name: str) -> str:
        one = self._made.processes[name]
        one.kill()
        self._wait()
        one.start()
        one.await_ready()
        return f"{name} killed"

    def _broker_stops(self) -> str:
        self._made.kafka.stop()
        self._wait()
        self._made.kafka.start()
        return "broker restarted"

    def _broker_is_killed(self) -> str:
        self._made.kafka.kill()
        self._wait()
        self._made.kafka.start()
        return "broker killed"

    def _store_restarts(self) -> str:
        self._made.postgres.stop()
        self._wait()
        self._made.postgres.start()
        return "store restarted"

    def _receiver_is_slow(self) -> str:
        manner = self._rng.choice(SLOW)
        self._made.hook.behave(manner)
        self._wait()
        self._made.hook.behave("takes")
        return f"receiver {manner.replace('_', ' ')}"

    def _clock_errs(self) -> str:
        engine, seconds = self._rng.choice(sorted(ENGINES)), self._rng.uniform(*SKEW_S)
        self._made.processes[engine].order(f"skew {seconds:.1f}")
        return f"clock of {engine} {seconds:+.1f} s"

    def _wait(self) -> None:
        time.sleep(self._rng.uniform(*DOWN_S))
