"""The demo: traffic, a bleed, memory that is kept, both seen everywhere in seconds, and the end."""

import time
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from tests.cluster import faults, places, seen
from tests.cluster.browser import screenshot
from tests.cluster.cluster import Cluster, cluster
from tests.cluster.needed import needed
from tests.cluster.seen import BLEED, LEARNING, UNRELEASED, MissingError, until_seen
from tests.cluster.site import QUIET_S
from tests.cluster.steps import Steps

ALL_WITHIN_S: Final = 180.0
"""From the start of the services until everything is ended."""

TRAFFIC_REQUESTS: Final = 45
"""Answered requests before the first fault: every engine's KV memory holds some of them."""

TRAFFIC_S: Final = 60.0
RESOLVED_S: Final = QUIET_S + 20.0
ENDED: Final = ("incident.resolved",)


def run(folder: Path, steps: Steps, *, pictures: Path) -> None:
    """Run the demo; raises MissingError, or what kept it from running."""
    rng = Random(3)
    with steps.step("what is needed is there") as step:
        step.seen = needed()
    began_s = steps.seconds
    with cluster(folder, steps) as made:
        _traffic(made, steps)
        _bleed(made, steps, rng)
        _kept(made, steps, rng)
        with steps.step("picture of the triage page") as step:
            step.seen = _picture(made, pictures)
        _resolve(made, steps)
        with steps.step("the engine without a fault") as step:
            step.seen = _sound(made)
    hold(steps.seconds - began_s)


def hold(seconds: float) -> None:
    """Hold the time of a whole run against its limit; raises MissingError."""
    if seconds > ALL_WITHIN_S:
        raise MissingError(
            f"all was seen, but it took {seconds:.0f} s instead of {ALL_WITHIN_S:.0f}; next: "
            "the seconds of the steps"
        )


def _traffic(made: Cluster, steps: Steps) -> None:
    with steps.step("traffic of twelve tenants, and no incident") as step:
        answers = until_seen(
            partial(_answers, made),
            TRAFFIC_S,
            f"{TRAFFIC_REQUESTS} answers of the engines",
            "engine-0.stderr and the like",
        )
        if places.on_board(made, LEARNING, since_s=time.time()):
            raise MissingError("workers are still learning; see worker-0.log")
        if told := [call.body for call in made.hook.calls]:
            raise MissingError(f"an incident without a fault: {told[0][:500]!r}")
        step.seen = f"{answers} answers, findings are not capped"


def _answers(made: Cluster) -> places.Found:
    return str(made.clients.answered) if made.clients.answered >= TRAFFIC_REQUESTS else None


def _bleed(made: Cluster, steps: Steps, rng: Random) -> None:
    engine = made.processes[faults.BLEEDING]
    with steps.step("a refused prompt is answered from stale KV memory") as step:
        bled = faults.bleed(made.site, engine, made.traffic.language, rng)
        if bled is None:
            raise MissingError(f"no answer of {engine.name} held foreign text; see {engine.log}")
        step.seen = f"{bled.tokens} tokens of {bled.source.tenant} in a row for {bled.sink.tenant}"
    engine.order("sound")
    began_s = bled.sink.sent_s
    seen.see(made, steps, BLEED, faults.BLEEDING, began_s=began_s)
    seen.see_open(made, steps, began_s=began_s)


def _kept(made: Cluster, steps: Steps, rng: Random) -> None:
    engine = made.processes[faults.KEEPING]
    with made.clients.pause(faults.KEEPING):
        with steps.step("an aborted request keeps its KV memory") as step:
            one = made.clients.asked[faults.KEEPING][-1]
            kept = faults.keep_memory(made.site, engine, rng, one.prompt, tenant=one.tenant)
            step.seen = "its client went away"
        seen.see(made, steps, UNRELEASED, faults.KEEPING, began_s=kept.sent_s)
        engine.order("sound")


def _resolve(made: Cluster, steps: Steps) -> None:
    """Wait for the end of both incidents, which comes of silence."""
    for rule, kv_pool in ((BLEED, faults.BLEEDING), (UNRELEASED, faults.KEEPING)):
        with steps.step(f"{rule} of {kv_pool} is resolved") as step:
            step.seen = until_seen(
                partial(places.in_receiver, made, rule, kv_pool, kinds=ENDED),
                RESOLVED_S,
                f"the end of {rule} in the receiver",
                "the log of the api",
            )
            until_seen(
                partial(places.gone_from_alertmanager, made, rule, kv_pool),
                seen.SEEN_WITHIN_S,
                f"the end of {rule} in Alertmanager",
                "alertmanager.log",
            )


def _picture(made: Cluster, pictures: Path) -> str:
    shown = places.incident(made, BLEED, faults.BLEEDING)
    assert shown is not None
    path = pictures / "triage.png"
    screenshot(places.page_of(made, shown), path)
    return str(path)


def _sound(made: Cluster) -> str:
    """Hold the whole run against the pool that had no fault."""
    asked = [one for one in made.clients.asked["engine-2"] if one.status == 200]
    if found := places.incidents_of(made, "engine-2"):
        raise MissingError(
            f"an incident of the engine without a fault: {found[0]['lead']['explanation']}"
        )
    return f"{len(asked)} answers, no incident"
