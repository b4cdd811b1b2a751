"""The demo: traffic, a bleed, memory that is kept, both seen everywhere in seconds, and the end."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from tests.cluster import faults, places
from tests.cluster.boards import Panel
from tests.cluster.browser import screenshot
from tests.cluster.cluster import Cluster, cluster
from tests.cluster.needed import needed
from tests.cluster.site import QUIET_S
from tests.cluster.steps import Steps

SEEN_WITHIN_S: Final = 10.0
"""From the injection of a fault to the last place where it is seen."""

ALL_WITHIN_S: Final = 180.0
"""From the start of the services until everything is ended."""

TRAFFIC_REQUESTS: Final = 45
"""Answered requests before the first fault: every engine's KV memory holds some of them."""

TRAFFIC_S: Final = 60.0
RESOLVED_S: Final = QUIET_S + 20.0
LOOK_S: Final = 0.1

BLEED: Final = "BW001"
UNRELEASED: Final = "BW201"
TOLD: Final = ("incident.opened", "incident.updated", "incident.reopened")
ENDED: Final = ("incident.resolved",)

SHOWN: Final = {
    BLEED: (
        Panel("overview", "Findings by rule", {"rule": BLEED}),
        Panel("overview", "High findings, last hour"),
        Panel("overview", "Open incidents"),
    ),
    UNRELEASED: (
        Panel("overview", "Findings by rule", {"rule": UNRELEASED}),
        Panel("overview", "Unreleased KV tokens", {"engine": "engine-1", "quality": "exact"}),
    ),
}
"""The panels that show each of the faults."""

LEARNING: Final = Panel("overview", "Learning")

FIRES: Final = 'sum(ALERTS{alertname="BleedwatchBleed",alertstate="firing"})'
"""The alert of Prometheus about findings that are high; that about kept memory takes a minute."""

Place = tuple[str, Callable[[], places.Found]]


class MissingError(Exception):
    """Something was not seen in time: what, where, and what to look at next."""


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
        seen = until_seen(
            partial(_answers, made),
            TRAFFIC_S,
            f"{TRAFFIC_REQUESTS} answers of the engines",
            "engine-0.stderr and the like",
        )
        if places.on_board(made, LEARNING, since_s=time.time()):
            raise MissingError("workers are still learning; see worker-0.log")
        if told := [call.body for call in made.hook.calls]:
            raise MissingError(f"an incident without a fault: {told[0][:500]!r}")
        step.seen = f"{seen} answers, findings are not capped"


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
    _see(made, steps, BLEED, faults.BLEEDING, began_s=bled.sink.sent_s)


def _kept(made: Cluster, steps: Steps, rng: Random) -> None:
    engine = made.processes[faults.KEEPING]
    with made.clients.pause(faults.KEEPING):
        with steps.step("an aborted request keeps its KV memory") as step:
            one = made.clients.asked[faults.KEEPING][-1]
            kept = faults.keep_memory(made.site, engine, rng, one.prompt, tenant=one.tenant)
            step.seen = "its client went away"
        _see(made, steps, UNRELEASED, faults.KEEPING, began_s=kept.sent_s)
        engine.order("sound")


def _see(made: Cluster, steps: Steps, rule: str, kv_pool: str, *, began_s: float) -> None:
    """Look at all places until all show it, and hold the slowest against the limit."""
    found: list[Place] = [
        ("in Alertmanager", partial(places.in_alertmanager, made, rule, kv_pool)),
        ("in the receiver", partial(places.in_receiver, made, rule, kv_pool, kinds=TOLD)),
        ("on the triage page", partial(places.on_page, made, rule, kv_pool)),
        *(
            (f"in {panel}", partial(places.on_board, made, panel, since_s=began_s))
            for panel in SHOWN[rule]
        ),
    ]
    if rule == BLEED:
        found.append(("as an alert of Prometheus", partial(places.in_prometheus, made, FIRES)))
    for name, place in found:
        with steps.step(f"{rule} of {kv_pool} {name}") as step:
            left_s = began_s + SEEN_WITHIN_S - time.time()
            step.seen = until_seen(place, left_s, step.name, "the log of the api")
            step.seen += f", {time.time() - began_s:.1f} s after the fault"


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
                SEEN_WITHIN_S,
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


def until_seen(place: Callable[[], places.Found], seconds: float, what: str, next_step: str) -> str:
    """Look until something is seen and return it; raises MissingError."""
    until_s = time.monotonic() + seconds
    while True:
        if (seen := places.look(place)) is not None:
            return seen
        if time.monotonic() > until_s:
            raise MissingError(
                f"not seen within {max(seconds, 0):.1f} s: {what}; next: {next_step}"
            )
        time.sleep(LOOK_S)
