"""A probe against the fake engine, with what is random decided by a seed."""

from random import Random
from typing import Any, Final

from detector.check.verdict import Verdict
from detector.probe.plan import NAMES
from detector.probe.probing import Given, Probed, probe
from tests.fakes.http_engine import HttpEngine

SEED: Final = 5
SETTLE_S: Final = 2.0
"""The fake releases at once; a busy machine may take its time to notice that a client left."""


def probed(engine: HttpEngine, *, only: tuple[str, ...] = NAMES, **more: Any) -> Probed:
    """Probe a fake engine with some checks."""
    skipped = tuple(name for name in NAMES if name not in only)
    given: dict[str, Any] = {"settle_s": SETTLE_S, "rng": Random(SEED)} | more
    return probe(Given(url=engine.url, skipped=skipped, **given))


def checks(found: Probed, verdict: Verdict) -> set[str]:
    """Return the names of the checks that said so."""
    return {one.check for one in found.results if one.said.verdict is verdict}
