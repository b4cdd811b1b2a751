"""The soak: the cluster under load while everything is killed in turn, and a ledger at the end.

Every bleed that was injected must be told of, or be counted as not seen, with the cause. Nothing
may be told with high confidence that has no fault behind it, memory must not grow, and in the end
everything works again.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from tests.chaos.small_disk import SmallDisk
from tests.cluster import faults, ledger, memory, places
from tests.cluster.cluster import Cluster, cluster
from tests.cluster.disturb import SPARED, Disturber
from tests.cluster.injector import Injector
from tests.cluster.ledger import Entry
from tests.cluster.memory import Memory
from tests.cluster.steps import Steps

LOAD_EACH_S: Final = 0.5
"""Six requests a second in all: what simulated engines leave of two cores."""

DISTURB_EACH_S: Final = 10.0
CALM_S: Final = 90.0
"""How long the last findings may take once everything runs again: a window is rebuilt first."""

DISK_MB: Final = 512
"""Of the broker, in memory."""


def run(folder: Path, steps: Steps, *, seconds: float, seed: int) -> list[str]:
    """Run the soak, print its ledger, and return what must not be; nothing if all is well."""
    rng = Random(seed)
    with (
        SmallDisk(folder, size_mb=DISK_MB) as disk,
        cluster(folder, steps, each_s=LOAD_EACH_S, broker_dir=disk.path / "data") as made,
    ):
        engine = made.processes[faults.BLEEDING]
        injector = Injector(made.site, engine, made.traffic.language, Random(seed + 1))
        disturber, held = Disturber(made, disk, rng), Memory()
        with steps.step(f"{seconds / 60:.0f} minutes of load, bleeds and kills") as step:
            injector.start()
            try:
                _disturb(made, disturber, held, seconds)
            finally:
                injector.end()
            disturber.calm()
            step.seen = f"{made.clients.answered} answers, {len(disturber.done)} disturbances"
        with steps.step("the last findings arrive") as step:
            entries, told = _settled(made, injector)
            step.seen = f"{len(told)} findings are stored"
        with steps.step("everything is scraped and every output delivers") as step:
            recovered = _recovered(made)
            step.seen = recovered or "not yet"
    lives = held.lives()
    print("\n".join([*_report(entries), *memory.table(lives)]))
    print(f"\nDisturbed: {', '.join(disturber.done)}.")
    wrong = [] if recovered else ["a process is not scraped or an output fails, long after"]
    return wrong + _wrong(entries, told) + memory.wrong(lives, SPARED, seconds=seconds)


def _wrong(entries: list[Entry], told: list[ledger.Told]) -> list[str]:
    """Return what must not be in the ledger."""
    if not entries:
        return ["no bleed was injected"]
    wrong = [f"{one.bleed.sink.request_id} is not accounted for" for one in _lost(entries)]
    return wrong + [
        f"{one['rule']} without a cause: {one['explanation']}" for one in ledger.false_high(told)
    ]


def _disturb(made: Cluster, disturber: Disturber, held: Memory, seconds: float) -> None:
    began = time.monotonic()
    while (now_s := time.monotonic() - began) < seconds:
        held.take(now_s, made.processes.values())
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


def _recovered(made: Cluster) -> places.Found:
    """Wait until everything works again, and say how; None if it does not in time."""
    until_s = time.monotonic() + CALM_S
    while True:
        seen = places.look(lambda: places.recovered(made.prometheus))
        if seen or time.monotonic() > until_s:
            return seen
        time.sleep(1.0)


def _lost(entries: list[Entry]) -> list[Entry]:
    return [one for one in entries if not one.is_accounted]


def _report(entries: list[Entry]) -> Iterator[str]:
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
    yield ""
