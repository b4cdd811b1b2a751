"""Two detectors on a core each beside one alone: `make two-workers`, two minutes, an idle machine.

What a cluster needs is reckoned from the CPU of one worker (tests/bench/scaling.py), so a second
one must not make the first slower: they share caches and memory. Broker and senders are left out,
as they would need cores of their own. Ends with 1, and says why, where the figures show nothing.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

from detector.benchmarks.end_to_end import Contestant, Stream, ours

LEAST_TIMES: Final = 1.8
"""What two workers judge, beside what one does alone."""

LEAST_OF_CORE: Final = 0.95
"""Who got less of its core had company, and its rate tells nothing."""

READY: Final = "ready"
GO: Final = "go"
END: Final = "end"
"""What the processes say to each other, besides turns."""

START_SECONDS: Final = 300.0
"""Kernels may have to be compiled, and windows are filled."""


class Scale(NamedTuple):
    """Responses that each window holds; rounds, and responses that one takes in a turn."""

    held: int = 4_100
    rounds: int = 5
    responses: int = 4_000


class Turn(NamedTuple):
    """What one detector did while it was let."""

    tokens: int
    wall_s: float
    cpu_s: float


class Round(NamedTuple):
    """Each alone, then both at once."""

    alone: tuple[Turn, ...]
    both: tuple[Turn, ...]

    @property
    def times(self) -> float:
        """How many times as much two judge in a second as one alone."""
        return _rate(self.both) / (_rate(self.alone) / len(self.alone))

    @property
    def of_core(self) -> float:
        """The least share of its core that anybody got."""
        return min(turn.cpu_s / turn.wall_s for turn in (*self.alone, *self.both))


def _rate(turns: tuple[Turn, ...]) -> float:
    return sum(turn.tokens / turn.wall_s for turn in turns)


def _work(orders: Connection, core: int, scale: Scale) -> None:
    """Be one detector: fill the window, then take the next responses at each order."""
    os.sched_setaffinity(0, {core})
    stream = Stream(scale.held + 2 * scale.rounds * scale.responses, seed=core)
    detector = Contestant(
        stream,
        ours(stream, sampling="every", responses=scale.held),
        per_round=scale.responses,
    )
    detector.fill(scale.held)
    orders.send(READY)
    while orders.recv() == GO:
        wall, cpu = time.monotonic(), time.process_time()
        tokens = detector.work()
        orders.send(Turn(tokens, time.monotonic() - wall, time.process_time() - cpu))


@contextmanager
def _detectors(scale: Scale) -> Iterator[list[Connection]]:
    """Start a detector on each of two cores; they are ready, and end with the `with` block."""
    context = multiprocessing.get_context("spawn")
    cores = sorted(os.sched_getaffinity(0))[:2]
    with ExitStack() as stack:
        ends = []
        for core in cores:
            ours_end, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, core, scale), daemon=True)
            process.start()
            theirs.close()  # so that a detector that dies is no endless wait
            stack.callback(process.join)
            stack.callback(ours_end.send, END)
            ends.append(ours_end)
        for end in ends:
            if not end.poll(START_SECONDS):
                raise RuntimeError("a detector is not ready in time")
            end.recv()
        yield ends


def measure(scale: Scale) -> list[Round]:
    """Let each work alone, and both at once, by turns."""
    rounds = []
    with _detectors(scale) as ends:
        for _ in range(scale.rounds):
            alone = tuple(_turns([end])[0] for end in ends)
            rounds.append(Round(alone, _turns(ends)))
    return rounds


def _turns(ends: list[Connection]) -> tuple[Turn, ...]:
    for end in ends:
        end.send(GO)
    return tuple(end.recv() for end in ends)


def faults(rounds: list[Round]) -> list[str]:
    """Return what the rounds do not show, by their median."""
    middle = sorted(rounds, key=lambda one: one.times)[len(rounds) // 2]
    if min(one.of_core for one in rounds) < LEAST_OF_CORE:
        return [f"somebody got {min(one.of_core for one in rounds):.0%} of a core: not idle"]
    if middle.times < LEAST_TIMES:
        return [f"two judge {middle.times:.2f} times what one does, not {LEAST_TIMES}"]
    return []


def main() -> int:
    """Measure and print a table; return the exit code."""
    if len(os.sched_getaffinity(0)) < 2:
        print("needs two cores", file=sys.stderr)
        return 1
    rounds = measure(Scale())
    print("| tokens/s alone | two at once | times | CPU alone | CPU beside another | of a core |")
    print("|---|---|---|---|---|---|")
    for one in rounds:
        cells = [
            f"{_rate(one.alone) / 2:,.0f}", f"{_rate(one.both):,.0f}", f"{one.times:.2f}",
            *(f"{_cpu_us(turns):.3f} µs" for turns in one), f"{one.of_core:.0%}",
        ]  # fmt: skip
        print(f"| {' | '.join(cells)} |")
    told = faults(rounds)
    for fault in told:
        print(f"not shown: {fault}", file=sys.stderr)
    return 1 if told else 0


def _cpu_us(turns: tuple[Turn, ...]) -> float:
    return 1e6 * sum(turn.cpu_s for turn in turns) / sum(turn.tokens for turn in turns)


if __name__ == "__main__":
    sys.exit(main())
