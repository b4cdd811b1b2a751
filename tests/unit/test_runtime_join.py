"""The runtime join: one step and no more, in any order, and never a finding of its own."""

import msgspec
import pytest

from detector.finding import Finding, Party, Severity
from detector.rules.joined import step_up
from detector.runtime.settings import RuntimeSettings
from detector.settings import WindowSettings
from detector.streaming.runtime_watch import RuntimeWatch
from ingest.schema_records import EngineEvent, EventKind, RuntimeSample
from tests.unit.findings import finding
from tests.unit.runtime_records import answered, event, healthy, sample

SINK = Party(
    tenant="b", request_id="2", kind="response", started_at_ms=130_000, ended_at_ms=140_000
)
SOURCE = Party(
    tenant="a", request_id="1", kind="prompt", started_at_ms=100_000, ended_at_ms=100_000
)
FIRST_S, LAST_S = 40, 200
"""A minute before the source's start, a minute after the sink's end."""


def content(severity: Severity = Severity.HIGH) -> Finding:
    made = finding(severity=severity, sink=SINK, source=SOURCE)
    return msgspec.structs.replace(made, kv_pool="p")


def watch() -> RuntimeWatch:
    return RuntimeWatch(RuntimeSettings(), WindowSettings())


def told(given: Finding, *evidence: EngineEvent | RuntimeSample, first: bool) -> list[Finding]:
    """Return every version of a content finding, with the evidence before or after it."""
    by = watch()
    versions = [] if first else [by.joined(given, is_news=True)]
    for one in evidence:
        if isinstance(one, EngineEvent):
            versions += by.event(one, is_news=True)
        else:
            versions += by.sample(one, is_news=True)
    versions += by.idle()
    versions += [by.joined(given, is_news=True)] if first else []
    return [one for one in versions if one.id == given.id]


CLEAR = event(EventKind.CLEAR_FAILED, 135, engine="prefill-0")
EVIDENCE: dict[str, list[EngineEvent | RuntimeSample]] = {
    "clear_failure": [CLEAR],
    "metadata_mismatch": [event(EventKind.CHECKSUM_MISMATCH, 135)],
    "transfer_failure": [healthy(130), healthy(135, transfer_failures_total=4)],
    "unreleased_kv": [healthy(135, unreleased_tokens=9_000, running_requests=0)],
}


@pytest.mark.parametrize("signal", EVIDENCE)
@pytest.mark.parametrize("first", [True, False])
def test_any_evidence_raises_by_exactly_one_step(signal: str, *, first: bool) -> None:
    for severity in Severity:
        last = told(content(severity), *EVIDENCE[signal], first=first)[-1]
        assert last.severity is step_up(severity)
        assert last.runtime is not None
        assert list(last.runtime) == [signal]
        calm = msgspec.structs.replace(last, severity=severity, runtime=None)
        expected = msgspec.structs.replace(content(severity), detected_at_ms=last.detected_at_ms)
        assert calm == expected


def test_all_evidence_together_raises_by_one_step_too() -> None:
    everything = [one for pieces in EVIDENCE.values() for one in pieces]
    for first in (True, False):
        versions = told(content(Severity.MEDIUM), *everything, first=first)
        assert versions[-1].severity is Severity.HIGH
        assert len(versions) == (1 if first else 2)


def test_estimates_of_unreleased_memory_are_evidence_once_they_last() -> None:
    held = [
        healthy(at_s, unreleased_tokens=9_000, running_requests=0, unreleased_quality="estimate")
        for at_s in range(LAST_S - 315, LAST_S, 15)
    ]
    short, lasting = (told(content(), *pieces, first=False)[-1] for pieces in (held[-3:], held))
    assert (short.severity, short.runtime) == (Severity.HIGH, None)
    assert lasting.severity is Severity.CRITICAL
    assert list(lasting.runtime or {}) == ["unreleased_kv"]


def test_steps_go_up_to_critical() -> None:
    steps = [step_up(severity).value for severity in Severity]
    assert steps == ["low", "medium", "high", "critical", "critical"]


def test_what_happened_is_said_in_numbers() -> None:
    (one,) = told(content(), CLEAR, event(EventKind.CLEAR_FAILED, 138), first=True)
    assert one.runtime == {
        "clear_failure": "2 failures on e, prefill-0 (log), first 5.0 s after the sink's start"
    }


@pytest.mark.parametrize(
    ("at_s", "raised"), [(FIRST_S - 0.001, 0), (FIRST_S, 1), (LAST_S, 1), (LAST_S + 0.001, 0)]
)
def test_the_margin_is_a_minute_on_both_sides(at_s: float, raised: int) -> None:
    for first in (True, False):
        last = told(content(Severity.MEDIUM), event(EventKind.KV_CANARY, at_s), first=first)[-1]
        assert (last.severity is Severity.HIGH) == bool(raised)


def test_another_pools_evidence_and_clean_metrics_change_nothing() -> None:
    for one in (event(EventKind.CLEAR_FAILED, 135, kv_pool="q"), healthy(135), sample(135)):
        assert told(content(), one, first=True) == [content()]
        assert told(content(), one, first=False) == [content()]


def test_a_rejected_and_answered_request_nearby_is_evidence() -> None:
    by = watch()
    by.joined(content(), is_news=True)
    by.event(event(EventKind.REJECTED, 120, request_id="r"), is_news=True)
    both = by.parts([answered("r", 120, 40, tenant="c")], is_news=True)
    assert [one.rule for one in both] == ["BW101", "BW001"]
    assert both[1].severity is Severity.CRITICAL


def test_evidence_alone_makes_no_content_finding() -> None:
    by = watch()
    alone = [
        *by.event(CLEAR, is_news=True), *by.sample(healthy(130), is_news=True),
        *by.sample(healthy(150, transfer_failures_total=90), is_news=True), *by.idle(),
    ]  # fmt: skip
    assert {one.rule for one in alone} == {"BW202", "BW204"}


def test_a_finding_that_was_told_raised_is_not_told_again() -> None:
    by = watch()
    by.event(CLEAR, is_news=False)
    assert by.joined(content(), is_news=False).severity is Severity.CRITICAL
    assert not by.event(event(EventKind.KV_CANARY, 136), is_news=True)
