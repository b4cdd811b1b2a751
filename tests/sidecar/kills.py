"""Kills a sidecar at random moments while its log grows and rotates, and counts what is lost."""

import json
import time
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from tests.sidecar.process import SidecarProcess, Site
from tests.sidecar.writer import LogWriter
from tests.streams.process import until

LOOK_MS: Final = 1_000
"""What a sidecar says was put together a moment before: it is asked for what comes after that."""

MOST_S: Final = 1.5
"""A sidecar lives so long at most before it is killed: some die as they start, some under load."""


CATCH_UP_S: Final = 240.0
"""What piled up meanwhile is read by the last sidecar, on a machine that may be busy."""


def has_caught_up(site: Site, since_ms: float) -> bool:
    """Tell whether a sidecar has said since an instant that it has read everything."""
    health = site.folder / "health.json"
    if not health.exists():
        return False
    told = json.loads(health.read_bytes())
    return (
        told["at_ms"] > since_ms
        and bool(told["logs"])
        and not any(log["behind_bytes"] for log in told["logs"])
    )


class Outcome(NamedTuple):
    """What was on the broker in the end. A sequence is known by all that it says."""

    kills: int
    rotations: int
    expected: int
    lost: int
    strange: int
    """Sequences that the log does not have: halves of others."""
    repeated: int
    """Sequences that are there more than once, with the same ids."""


def kill_and_count(site: Site, *, kills: int, seed: int, log_format: str) -> Outcome:
    """Kill a sidecar so often, let the last one end in order, and look."""
    chance = Random(seed)
    said = site.folder / "sidecar.stderr"
    first = SidecarProcess(site, said)
    writer = LogWriter(site.log, log_format=log_format, seed=seed, follower=first)
    with first.killed_at_last(), writer:
        first.kill()
        for _ in range(kills - 1):
            sidecar = SidecarProcess(site, said)
            try:
                sidecar.await_start()
                time.sleep(chance.uniform(0, MOST_S))
            finally:
                sidecar.kill()
        last = SidecarProcess(site, said)
        try:
            last.await_start()
            writer.end()
            ended_ms = time.time() * 1000 + LOOK_MS
            until(lambda: has_caught_up(site, ended_ms), CATCH_UP_S)
            code = last.stop()
        finally:
            last.kill()
    assert code == 0, said.read_text()
    return judged(site, writer.whole, kills=kills, rotations=writer.rotations)


def judged(site: Site, whole: Path, *, kills: int, rotations: int) -> Outcome:
    """Compare what is on the broker with what a replay of the whole log says."""
    told, expected = site.told(), site.expected(whole)
    return Outcome(
        kills=kills,
        rotations=rotations,
        expected=len(expected),
        lost=len(set(expected) - set(told)),
        strange=len(set(told) - set(expected)),
        repeated=sum(count > 1 for count in told.values()),
    )
