"""The soak: the cluster under load while everything is killed in turn, and a ledger at the end.

Every bleed that was injected must be told of, or be counted as not seen, with the cause. Nothing
may be told with high confidence that has no fault behind it, and memory must not grow.
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from detector.sample.language import Language
from tests.cluster import faults, ledger
from tests.cluster.cluster import Cluster, cluster
from tests.cluster.disturb import Disturber
from tests.cluster.ledger import Entry
from tests.cluster.memory import Memory
from tests.cluster.process import Process
from tests.cluster.site import Site
from tests.cluster.steps import Steps

LOAD_EACH_S: Final = 0.5
"""Six requests a second in all: what simulated engines leave of two cores."""

INJECT_EACH_S: Final = 12.0
DISTURB_EACH_S: Final = 10.0
CALM_S: Final = 90.0
"""How long the last findings may take once everything runs again: a window is rebuilt first."""


class Injector:
    """Injects a bleed every few seconds in a thread, whether or not anything is away."""

    def __init__(self, site: Site, engine: Process, language: Language, rng: Random) -> None:
        self.bleeds: list[faults.Bleed] = []
        self._site, self._engine, self._language, self._rng = site, engine, language, rng
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="injector")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Let the one in flight finish."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(INJECT_EACH_S):
            if self._engine.is_running:
                self._inject()

    def _inject(self) -> None:
        with contextlib.suppress(OSError, AssertionError):  # it may be killed in between
            made = faults.bleed(self._site, self._engine, self._language, self._rng)
            self.bleeds += [] if made is None else [made]


def run(folder: Path, steps: Steps, *, seconds: float, seed: int) -> list[str]:
    """Run the soak, print its ledger, and return what must not be; nothing if all is well."""
    rng = Random(seed)
    with cluster(folder, steps, each_s=LOAD_EACH_S) as made:
        engine = made.processes[faults.BLEEDING]
        injector = Injector(made.site, engine, made.traffic.language, Random(seed + 1))
        disturber, memory = Disturber(made, rng), Memory()
        with steps.step(f"{seconds / 60:.0f} minutes of load, bleeds and kills") as step:
            injector.start()
            try:
                _disturb(made, disturber, memory, seconds)
            finally:
                injector.end()
            disturber.calm()
            step.seen = f"{made.clients.answered} answers, {len(disturber.done)} disturbances"
        with steps.step("the last findings arrive") as step:
            entries, told = _settled(made, injector)
            step.seen = f"{len(told)} findings are stored"
    print("\n".join(_report(entries, disturber, memory)))
    wrong = [f"{one.bleed.sink.request_id} is not accounted for" for one in _lost(entries)]
    wrong += [
        f"{one['rule']} without a cause: {one['explanation']}" for one in ledger.false_high(told)
    ]
    wrong += [f"{name} grows" for name in memory.growing()]
    return wrong if entries else ["no bleed was injected"]


def _disturb(made: Cluster, disturber: Disturber, memory: Memory, seconds: float) -> None:
    began = time.monotonic()
    while (now_s := time.monotonic() - began) < seconds:
        memory.take(now_s, made.processes.values())
        time.sleep(DISTURB_EACH_S)
        print(f"{now_s:6.0f} s  {disturber.next()}", flush=True)


def _settled(made: Cluster, injector: Injector) -> tuple[list[Entry], list[ledger.Told]]:
    """Wait until every bleed is told of, or the time for it is over."""
    until_s = time.monotonic() + CALM_S
    while True:
        told = list(ledger.findings(made.site))
        entries = ledger.entries(injector.bleeds, told)
        if all(one.rules for one in entries) or time.monotonic() > until_s:
            return entries, told
        time.sleep(1.0)


def _lost(entries: list[Entry]) -> list[Entry]:
    return [one for one in entries if not one.is_accounted]


def _report(entries: list[Entry], disturber: Disturber, memory: Memory) -> Iterator[str]:
    """Yield the ledger as Markdown."""
    content = sum(bool(ledger.CONTENT.intersection(one.rules)) for one in entries)
    only_other = sum(bool(one.rules) for one in entries) - content
    blind = sum(bool(one.causes) for one in entries)
    seconds = sorted(one.seconds for one in entries if one.seconds is not None)
    yield "\n| injected | told of by content | by contradiction alone | counted blind | lost |"
    yield "|---|---|---|---|---|"
    yield f"| {len(entries)} | {content} | {only_other} | {blind} | {len(_lost(entries))} |"
    if seconds:
        half, most = seconds[len(seconds) // 2], seconds[-1]
        yield f"\nFrom request to finding: median {half:.1f} s, longest {most:.1f} s."
    yield "\n| process | first half, MiB | second half, MiB | starts |"
    yield "|---|---|---|---|"
    for row in memory.rows():
        yield f"| {' | '.join(str(word) for word in row)} |"
    yield f"\nDisturbed: {', '.join(disturber.done)}."
