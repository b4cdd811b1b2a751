"""BW901: what loses stretches is told at once, single cases only when there are several."""

import pytest

from detector.finding import Finding, Severity
from detector.rules.blind import CAUSES, MAX_EPISODES, BlindRule, Lost
from detector.runtime.settings import RuntimeSettings
from detector.settings import WindowSettings
from detector.streaming.runtime_watch import RuntimeWatch
from ingest.schema_records import EventKind
from tests.unit.runtime_records import event

MINUTE_MS = 60_000
LEAST = 10


def told(rule: BlindRule, cause: str, *at_ms: int, engine: str = "e", amount: int = 1) -> list[int]:
    """Return the places in `at_ms` at which something was told."""
    return [
        number
        for number, at in enumerate(at_ms)
        if rule.lost(Lost("p", engine, cause, amount, at)) is not None
    ]


@pytest.mark.parametrize("cause", [one for one, how in CAUSES.items() if how.at_once])
def test_a_lost_stretch_is_told_at_once_and_once(cause: str) -> None:
    assert told(BlindRule(RuntimeSettings()), cause, 0, 1_000, 2_000) == [0]


@pytest.mark.parametrize("cause", [one for one, how in CAUSES.items() if not how.at_once])
def test_single_cases_are_told_when_there_are_several(cause: str) -> None:
    rule = BlindRule(RuntimeSettings())
    assert told(rule, cause, *range(0, 1_000 * (LEAST + 5), 1_000)) == [LEAST - 1]
    sparse = BlindRule(RuntimeSettings())
    assert told(sparse, cause, *range(0, LEAST * 5 * MINUTE_MS, MINUTE_MS)) == []


def test_it_is_over_when_nothing_was_lost_for_the_quiet_time() -> None:
    rule = BlindRule(RuntimeSettings())
    assert told(rule, "spool_dropped", 0, 4 * MINUTE_MS, 8 * MINUTE_MS) == [0]
    assert told(rule, "spool_dropped", 13 * MINUTE_MS) == [0]


def test_engines_and_causes_are_told_apart() -> None:
    rule = BlindRule(RuntimeSettings())
    found = [
        rule.lost(Lost("p", engine, cause, 3, 0))
        for engine in ("e", "f", "")
        for cause in ("log_lost", "unknown_key")
    ]
    assert len({one.id for one in found if one is not None}) == 6


def test_the_finding_says_what_where_and_how_much() -> None:
    found = BlindRule(RuntimeSettings()).lost(Lost("p", "", "evicted", 1_200, 7_000))
    assert found is not None
    assert found.explanation == (
        "Blind on pool p: 1,200 sequences were given up inside the window for want of memory. "
        "What bled there may not be found."
    )
    assert (found.severity, found.runtime) == (Severity.MEDIUM, {"evicted": "1,200"})
    partly = BlindRule(RuntimeSettings()).lost(Lost("p", "e", "ids_missing", 50, 0))
    assert partly is not None
    assert partly.severity is Severity.LOW
    assert partly.explanation.startswith("Blind on engine e: 50 ")


def test_a_cause_of_a_newer_sidecar_is_told_all_the_same() -> None:
    found = BlindRule(RuntimeSettings()).lost(Lost("p", "e", "from_the_future", 2, 0))
    assert found is not None
    assert found.runtime == {"from_the_future": "2"}


def test_however_many_engines_lose_something_memory_is_bounded() -> None:
    rule = BlindRule(RuntimeSettings())
    for number in range(MAX_EPISODES + 1):
        rule.lost(Lost("p", f"e{number}", "log_lost", 1, 0))
    assert told(rule, "log_lost", 1, engine=f"e{MAX_EPISODES}") == []
    assert told(rule, "log_lost", 1, engine="e0") == [0], "the oldest is forgotten"


def watched(*, is_news: bool) -> tuple[RuntimeWatch, list[Finding]]:
    watch = RuntimeWatch(RuntimeSettings(), WindowSettings())
    reported = event(EventKind.BLIND, 5, detail="spool_dropped", count=4)
    return watch, watch.event(reported, is_news=is_news)


def test_a_report_of_a_sidecar_becomes_a_finding() -> None:
    _, (found,) = watched(is_news=True)
    assert (found.rule, found.engine, found.runtime) == ("BW901", "e", {"spool_dropped": "4"})


def test_what_was_told_before_a_move_is_not_told_again() -> None:
    watch, found = watched(is_news=False)
    assert found == []
    assert watch.event(event(EventKind.BLIND, 6, detail="spool_dropped"), is_news=True) == []
