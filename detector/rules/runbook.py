"""What to do about each rule and each alert about the monitor: the texts of the runbooks, as data.

The pages of `dashboards/runbooks`, the triage page and the boards show them.
"""

from functools import cache
from importlib.resources import files
from typing import Final

import msgspec
import yaml

Steps = tuple[str, ...]

SOURCES: Final = ("rule_runbooks.yaml", "alert_runbooks.yaml")


class Runbook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One runbook: sentences, and steps in the order in which to take them."""

    meaning: str
    impact: str
    diagnosis: Steps
    containment: Steps
    blast_radius: Steps
    repair: Steps
    notify: Steps
    false_alarms: Steps


class _Book(msgspec.Struct, frozen=True):
    """One file; what it shares between its runbooks is for YAML alone."""

    runbooks: dict[str, Runbook]


@cache
def runbooks() -> dict[str, Runbook]:
    """Return every runbook, by the id of its rule or the name of its alert."""
    made: dict[str, Runbook] = {}
    for name in SOURCES:
        text = files("detector.rules").joinpath(name).read_text(encoding="utf-8")
        made |= msgspec.convert(yaml.safe_load(text), _Book).runbooks
    return made
