"""Rule BW402: an engine runs a version for which advisories about isolation are known.

It needs no traffic. Flags are not known here, so what depends on them may apply; the role of an
engine, where it tells it, decides whether prefill and decode run apart.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import xxhash

from detector.advisories.assess import Assessment, Deployment, Verdict, assess
from detector.advisories.features import Facts, Known
from detector.advisories.model import Advisory, Features
from detector.advisories.versions import parse_version
from detector.finding import Confidence, Finding
from detector.rules.engine_finding import AboutEngine
from detector.runtime.records import Sample

VULNERABLE: Final = "BW402"

MAX_TOLD: Final = 16
"""Versions of one engine remembered as told: more than it is upgraded to within a retention."""

APART: Final = "disaggregation"
_ROLES: Final = {"prefill": True, "decode": True, "both": False}


class KnownAdvisories(NamedTuple):
    """What is compared with versions, and what the conditions in it mean."""

    advisories: Sequence[Advisory]
    features: Features


NO_ADVISORIES: Final = KnownAdvisories((), {})
"""Nothing is compared: for replays and tests of other rules."""


class VersionRule:
    """The rule about one engine; its samples come in the order of its clock."""

    def __init__(self, known: KnownAdvisories, *, kv_pool: str, engine: str) -> None:
        self._known = known
        self._engine = engine
        self._about = AboutEngine(kv_pool, engine)
        self._seen: tuple[str, int] | None = None
        self._told: dict[str, None] = {}

    def sample(self, sample: Sample) -> Finding | None:
        """Judge a sample. A version is told once, when two scrapes in a row have shown it."""
        if sample.engine_version is None:
            return None
        running = f"{sample.engine_kind} {sample.engine_version}"
        at_ms = sample.sampled_at_ms
        if self._seen is None or self._seen[0] != running:
            self._seen = (running, at_ms)
            return None
        if running in self._told or at_ms <= self._seen[1]:
            return None
        self._told[running] = None
        if len(self._told) > MAX_TOLD:
            del self._told[next(iter(self._told))]
        return self._judged(sample, running, since_ms=self._seen[1])

    def _judged(self, sample: Sample, running: str, *, since_ms: int) -> Finding | None:
        version = parse_version(sample.engine_version or "")
        if version is None:
            return None
        deployment = Deployment(sample.engine_kind, version, None, _facts(sample))
        found = assess(self._known.advisories, deployment, self._known.features)
        sure = [one for one in found if one.verdict is Verdict.APPLIES]
        possible = [one for one in found if one.verdict is Verdict.MAY_APPLY]
        if not sure and not possible:
            return None
        finding = self._about.finding(
            VULNERABLE,
            since_ms,
            sample.sampled_at_ms,
            f"Engine {self._engine} runs {running}, in which faults of the isolation of tenants "
            f"are known: {_sentence(sure, possible)}. `bleedwatch check version` with its flags "
            "says which apply.",
            {"applies": len(sure), "may_apply": len(possible)},
            confidence=Confidence.HIGH if sure else Confidence.MEDIUM,
        )
        name = "\0".join((VULNERABLE, sample.kv_pool, self._engine, running))
        # of the version, not of the moment: a restart of engine or worker makes no second one
        return msgspec.structs.replace(finding, id=xxhash.xxh3_128_hexdigest(name.encode()))


def _facts(sample: Sample) -> Facts:
    apart = _ROLES.get(sample.role or "")
    return {} if apart is None else {APART: Known(apart, f"the engine's role is {sample.role}")}


def _sentence(sure: Sequence[Assessment], possible: Sequence[Assessment]) -> str:
    groups = (("", sure), (" may apply", possible))
    return "; ".join(
        ", ".join(one.advisory.id for one in found) + word for word, found in groups if found
    )
