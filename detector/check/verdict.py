"""What a check of a configuration says: pass, warn, fail or unknown, and why."""

import enum
from typing import NamedTuple


class Verdict(enum.StrEnum):
    """What a check says, the gravest first. Only `fail` blocks a deployment."""

    FAIL = "fail"
    WARN = "warn"
    UNKNOWN = "unknown"
    """It could not be decided from what was given; the next step says what is missing."""
    PASS = "pass"  # noqa: S105 - a word, no password


class Said(NamedTuple):
    """The answer of one check about one engine, with its numbers. `where` is FILE:LINE."""

    verdict: Verdict
    found: str
    where: str
    why: str
    next_step: str = ""


class Result(NamedTuple):
    """What one check said of one engine."""

    check: str
    engine: str
    said: Said


def passed(found: str, where: str) -> Said:
    """Say that all is well, and because of what."""
    return Said(Verdict.PASS, found, where, "")


def gravest(results: list[Result]) -> list[Result]:
    """Return the results, the gravest first, in their order otherwise."""
    order = list(Verdict)
    return sorted(results, key=lambda one: order.index(one.said.verdict))
