"""Lays what happened on a pool beside a content finding, and raises its severity by one step.

Runtime evidence never makes a content finding and never hides one: most bleeds happen while all
metrics are clean.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from detector.finding import Finding, Severity
from detector.runtime.evidence import SIGNALS, Happened, PoolEvidence

MAX_WAITING: Final = 1_000
"""Content findings that wait for later evidence; the oldest is done first."""

_FAILURES: Final = "failures"
_AMOUNT: Final = {
    "unreleased_kv": "tokens unreleased",
    "rejected_answered": "requests answered that could not be",
}


@dataclass(slots=True)
class _Waiting:
    finding: Finding
    is_news: bool
    raised: bool


class RuntimeJoin:
    """Joins content findings and evidence in whatever order they come.

    A finding is told at once with what is known; when the first evidence for it comes later it is
    told again under the same id, one step higher. Later evidence changes nothing more. While a
    window is rebuilt, evidence that is news raises nothing: `rebuilt` does, when others hear again.
    """

    def __init__(self, evidence: PoolEvidence, *, margin_ms: int) -> None:
        self._evidence = evidence
        self._margin_ms = margin_ms
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()

    def joined(self, finding: Finding, *, is_news: bool) -> Finding:
        """Return a content finding with what is known to have happened around it."""
        told = with_runtime(finding, self._around(finding, but_news=not is_news))
        raised = told is not finding
        self._waiting[finding.id] = _Waiting(finding, is_news, raised)
        self._waiting.move_to_end(finding.id)
        if len(self._waiting) > MAX_WAITING:
            self._waiting.popitem(last=False)
        return told

    def happened(self, kv_pool: str, *, is_news: bool, now_ms: int) -> list[Finding]:
        """Return the findings that new evidence of a pool has raised; tell only what is news."""
        mine = (one for one in self._waiting.values() if one.finding.kv_pool == kv_pool)
        return self._raised(mine, is_news=is_news, now_ms=now_ms)

    def rebuilt(self, *, now_ms: int) -> list[Finding]:
        """Return the findings of a rebuilt window that evidence has raised since they were told."""
        return self._raised(self._waiting.values(), is_news=True, now_ms=now_ms)

    def _raised(self, findings: Iterable[_Waiting], *, is_news: bool, now_ms: int) -> list[Finding]:
        raised = []
        for waiting in findings:
            if waiting.raised:
                continue
            told = with_runtime(waiting.finding, self._around(waiting.finding))
            if told is waiting.finding:
                continue
            waiting.raised = True
            if is_news or waiting.is_news:
                at_ms = max(now_ms, told.detected_at_ms)
                raised.append(msgspec.structs.replace(told, detected_at_ms=at_ms))
        return raised

    def expire(self, now_ms: int, *, late_ms: int) -> None:
        """Forget findings for which no evidence is waited any more at this event time."""
        limit_ms = now_ms - self._margin_ms - late_ms
        for key in [
            key for key, one in self._waiting.items() if one.finding.sink.ended_at_ms < limit_ms
        ]:
            del self._waiting[key]

    def _around(self, finding: Finding, *, but_news: bool = False) -> list[Happened]:
        first_ms = finding.source.started_at_ms - self._margin_ms
        last_ms = finding.sink.ended_at_ms + self._margin_ms
        return self._evidence.between(finding.kv_pool, first_ms, last_ms, but_news=but_news)


def with_runtime(finding: Finding, pieces: list[Happened]) -> Finding:
    """Return the finding one step graver, with what happened; itself if nothing did."""
    if not pieces:
        return finding
    told = {}
    for signal in SIGNALS:
        mine = [one for one in pieces if one.signal == signal]
        if mine:
            told[signal] = _told(mine, finding.sink.started_at_ms)
    return msgspec.structs.replace(finding, severity=step_up(finding.severity), runtime=told)


def step_up(severity: Severity) -> Severity:
    """Return the next graver severity; critical stays what it is."""
    grave = list(Severity)
    return grave[min(severity.rank + 1, len(grave) - 1)]


def _told(pieces: list[Happened], sink_start_ms: int) -> str:
    """Say how much, where and when, by the source that counts more."""
    amounts: dict[str, int] = {}
    for one in pieces:
        held = amounts.get(one.source, 0)
        is_level = one.signal == "unreleased_kv"
        amounts[one.source] = max(held, one.amount) if is_level else held + one.amount
    source, amount = max(amounts.items(), key=lambda item: item[1])
    seconds = (pieces[0].at_ms - sink_start_ms) / 1000
    when = f"{abs(seconds):.1f} s {'before' if seconds < 0 else 'after'} the sink's start"
    engines = ", ".join(sorted({one.engine for one in pieces}))
    what = _AMOUNT.get(pieces[0].signal, _FAILURES)
    count = f"{amount:,} {what}" if amount else "reported"
    return f"{count} on {engines} ({source}), first {when}"
