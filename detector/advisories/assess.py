"""Which advisories apply to a version and its configuration, and why."""

import enum
from collections.abc import Iterable
from types import MappingProxyType
from typing import NamedTuple

from packaging.version import Version

from detector.advisories.arguments import Arguments
from detector.advisories.features import Facts, known_of
from detector.advisories.model import Advisory, Affected, Features
from detector.advisories.versions import is_affected, told


class Verdict(enum.StrEnum):
    """What an advisory means for a deployment, the gravest first."""

    APPLIES = "applies"
    MAY_APPLY = "may apply"
    """The version is affected, and whether the configuration is cannot be told."""
    NOT_APPLICABLE = "not applicable"
    """The version is affected, and the configuration is not."""
    NOT_AFFECTED = "not affected"


class Deployment(NamedTuple):
    """What runs. `arguments` are None where the flags are not known."""

    program: str
    version: Version
    arguments: Arguments | None = None
    facts: Facts = MappingProxyType({})


class Assessment(NamedTuple):
    """One advisory, what it means here, and because of what."""

    advisory: Advisory
    verdict: Verdict
    because: str
    unknown: tuple[str, ...] = ()
    """Features that decide and of which nothing is known."""


def assess(
    advisories: Iterable[Advisory], deployment: Deployment, features: Features
) -> list[Assessment]:
    """Return an assessment of every advisory about the program, the gravest verdict first."""
    found = [
        _assessed(advisory, affected, deployment, features)
        for advisory in advisories
        for affected in advisory.affected
        if affected.package.name == deployment.program
    ]
    order = list(Verdict)
    return sorted(found, key=lambda one: order.index(one.verdict))


def _assessed(
    advisory: Advisory, affected: Affected, deployment: Deployment, features: Features
) -> Assessment:
    version = f"{deployment.program} {deployment.version}"
    inside = [one for one in affected.ranges if is_affected(deployment.version, one)]
    if not inside:
        ranges = "; ".join(map(told, affected.ranges))
        outside = f"{version} is not among the affected versions ({ranges})"
        return Assessment(advisory, Verdict.NOT_AFFECTED, outside)
    because = [f"{version} is affected ({told(inside[0])})"]
    unknown: list[str] = []
    for name in affected.database_specific.applies_when:
        feature = features[deployment.program][name]
        known = deployment.facts.get(name) or known_of(feature, deployment.arguments)
        if known is None:
            unknown.append(name)
            because.append(f"not known whether {feature.says} ({name})")
        elif known.is_used:
            because.append(f"{feature.says}: {known.by}")
        else:
            reason = f"not true that {feature.says}: {known.by}"
            return Assessment(advisory, Verdict.NOT_APPLICABLE, reason)
    verdict = Verdict.MAY_APPLY if unknown else Verdict.APPLIES
    return Assessment(advisory, verdict, "; ".join(because), tuple(unknown))
