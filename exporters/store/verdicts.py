"""Verdicts of people on findings, and how often a rule was right by them."""

import enum
from typing import NamedTuple

from sqlalchemy import Connection, func, select, update

from exporters.store.tables import findings


class Verdict(enum.StrEnum):
    """What somebody has decided about a finding; NONE: nobody has."""

    CONFIRMED = "confirmed"
    FALSE_POSITIVE = "false_positive"
    NONE = "none"


class Judged(NamedTuple):
    """Findings of one rule: all of them, and those with a verdict."""

    findings: int = 0
    confirmed: int = 0
    false_positives: int = 0

    @property
    def precision(self) -> float | None:
        """Share of the judged findings that are confirmed, 0 to 1; None without any."""
        judged = self.confirmed + self.false_positives
        return self.confirmed / judged if judged else None


def give_verdict(
    connection: Connection, finding_id: str, verdict: Verdict, *, by: str, now_ms: int
) -> bool:
    """Write a verdict over an earlier one, NONE takes it back; False without such a finding."""
    is_none = verdict is Verdict.NONE
    changed = connection.execute(
        update(findings)
        .where(findings.c.id == finding_id)
        .values(
            verdict=None if is_none else verdict.value,
            verdict_by=None if is_none else by,
            verdict_at_ms=None if is_none else now_ms,
        )
    )
    return bool(changed.rowcount)


def judged_by_rule(connection: Connection) -> dict[str, Judged]:
    """Return how many findings there are of each rule, and what was decided about them."""
    total = connection.execute(select(findings.c.rule, func.count()).group_by(findings.c.rule))
    judged = connection.execute(
        select(findings.c.rule, findings.c.verdict, func.count())
        .where(findings.c.verdict.is_not(None))
        .group_by(findings.c.rule, findings.c.verdict)
    )
    found = {rule: Judged(findings=count) for rule, count in total}
    for rule, verdict, count in judged:
        if verdict == Verdict.CONFIRMED:
            found[rule] = found[rule]._replace(confirmed=count)
        else:
            found[rule] = found[rule]._replace(false_positives=count)
    return found
