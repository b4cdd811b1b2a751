"""Where the two faults of the demo must be seen, and how long that may take."""

import time
from collections.abc import Callable
from functools import partial
from typing import Final

from detector.api.board import LOOK_S
from tests.cluster import places
from tests.cluster.boards import Panel
from tests.cluster.cluster import Cluster
from tests.cluster.steps import Steps

SEEN_WITHIN_S: Final = 10.0
"""From the injection of a fault to the last place where it is seen."""

TURN_S: Final = 0.1
"""Between two looks at a place."""

BLEED: Final = "BW001"
UNRELEASED: Final = "BW201"
TOLD: Final = ("incident.opened", "incident.updated", "incident.reopened")

SHOWN: Final = {
    BLEED: (
        Panel("overview", "Findings by rule", {"rule": BLEED}),
        Panel("overview", "High findings, last hour"),
        Panel("incidents", "Changes", {"kind": "opened"}),
    ),
    UNRELEASED: (
        Panel("overview", "Findings by rule", {"rule": UNRELEASED}),
        Panel("overview", "Unreleased KV tokens", {"engine": "engine-1", "quality": "exact"}),
    ),
}
"""The panels that show each of the faults at once."""

OPEN: Final = Panel("overview", "Open incidents")
"""The api asks its store for this every `LOOK_S` only."""

LEARNING: Final = Panel("overview", "Learning")

FIRES: Final = 'sum(ALERTS{alertname="BleedwatchBleed",alertstate="firing"})'
"""The alert of Prometheus about findings that are high; that about kept memory takes a minute."""

Place = tuple[str, Callable[[], places.Found]]


class MissingError(Exception):
    """Something was not seen in time: what, where, and what to look at next."""


def see(made: Cluster, steps: Steps, rule: str, kv_pool: str, *, began_s: float) -> None:
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
            step.seen = _in_time(place, step.name, began_s=began_s, within_s=SEEN_WITHIN_S)


def see_open(made: Cluster, steps: Steps, *, began_s: float) -> None:
    """Look at the number of open incidents, which comes later."""
    with steps.step(f"the incident in {OPEN}") as step:
        place = partial(places.on_board, made, OPEN, since_s=began_s)
        within_s = SEEN_WITHIN_S + LOOK_S
        step.seen = _in_time(place, step.name, began_s=began_s, within_s=within_s)


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
        time.sleep(TURN_S)


def _in_time(
    place: Callable[[], places.Found], what: str, *, began_s: float, within_s: float
) -> str:
    left_s = began_s + within_s - time.time()
    seen = until_seen(place, left_s, what, "the log of the api")
    return f"{seen}, {time.time() - began_s:.1f} s after the fault"
