"""A prefill and a decode engine whose processes die at any step, with memory that may outlive them.

What a process does goes through its book; `events` are what reached its audit file, in order.
"""

from collections.abc import Callable

from ingest.kv_lease.book import Book
from ingest.kv_lease.events import Event, Owner
from ingest.kv_lease.gate import Gate

KEY = bytes(range(32))
POOL = "pool"


class Crash(BaseException):
    """The process is gone."""


class FaultError(Exception):
    """Something went wrong in a request, or with a device."""


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.ms = 1_795_000_000_000

    def __call__(self) -> int:
        return self.ms


class Engine:
    """One engine: its memory (block to owner of the content), its book, its gate.

    `crash_at` counts steps (a record written, a block cleared); at the last one the process dies,
    before or after the step.
    """

    def __init__(
        self, name: str, clock: Clock, told: Callable[[Event], object] = Event.line
    ) -> None:
        self.name = name
        self.memory: dict[str, Owner] = {}
        self.events: list[Event] = []
        self.fails_to_clear = False
        self.crash_at: int | None = None
        self.dies_before_the_step = False
        self._clock = clock
        self._told = told
        self._start()

    def restart(self, *, memory_survives: bool) -> None:
        """Start again after a crash, and clear up what the last process has left."""
        self.crash_at = None
        if not memory_survives:
            self.memory.clear()
        self._start()
        self.book.recover(list(self.events), list(self.memory))

    def _start(self) -> None:
        self.book = Book(
            engine=self.name, kv_pool=POOL, key=KEY, audit=self._write, invalidate=self._clear,
            clock=self._clock,
        )  # fmt: skip
        self.gate = Gate(self.book)

    def _write(self, event: Event) -> None:
        def write() -> None:
            self.events.append(event)
            self._told(event)

        self._step(write)

    def _clear(self, block: str) -> None:
        if self.fails_to_clear:
            self.fails_to_clear = False
            raise FaultError
        self._step(lambda: self.memory.pop(block, None))

    def _step(self, step: Callable[[], object]) -> None:
        if self.crash_at is not None:
            self.crash_at -= 1
        if self.crash_at == 0 and self.dies_before_the_step:
            raise Crash
        step()
        if self.crash_at == 0:
            raise Crash
