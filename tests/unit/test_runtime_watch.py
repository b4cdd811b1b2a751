"""A partition's runtime watch: disorder, repeats, resets, skew and restarts change no finding."""

import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from detector.finding import Finding
from detector.rules.catalog import RULES
from detector.runtime.settings import RuntimeSettings
from detector.settings import WindowSettings
from detector.streaming.runtime_watch import RuntimeWatch
from ingest.schema_records import EngineEvent, EventKind, RuntimeSample, SequenceRecord
from tests.unit.runtime_records import answered, event, healthy, sent
from tests.unit.test_contradictions import take

Report = RuntimeSample | EngineEvent | SequenceRecord

HOLD_S = RuntimeSettings().hold_ms / 1_000
ALL_RULES = {"BW101", "BW102", "BW103", "BW104", "BW401"} | {f"BW20{n}" for n in range(1, 7)}


def bad_hour(engine: str, *, skew_s: float = 0) -> list[tuple[float, Report]]:
    """Return all that can go wrong at one engine, by the engine's clock, with true times."""
    reports: list[tuple[float, Report]] = []
    for at in range(0, 3_600, 5):
        wrong: dict[str, object] = {"clear_failures_total": int(at > 900) + int(at > 1_500)}
        if 1_200 < at < 1_500:
            wrong |= {"unreleased_tokens": 9_000, "running_requests": 0}
        if 1_800 < at < 2_000:
            wrong |= {"pool_usage_ratio": 0.97, "pool_tokens": 100_000}
        if at >= 2_400:  # restarted: counters begin at zero
            wrong |= {"clear_failures_total": 0, "transfer_failures_total": (at - 2_400) // 30}
        reports.append((at, healthy(at + skew_s, engine=engine, **wrong)))
    for at, kind in ((300, EventKind.KV_CANARY), (303, EventKind.METADATA_MISMATCH)):
        reports.append((at, event(kind, at + skew_s, engine=engine)))
    rejection = event(EventKind.REJECTED, 600 + skew_s, engine=engine, request_id="r1")
    reports.append((600, rejection))
    for at, name in ((600, "r1"), (700, "r2"), (800, "r3"), (850, "r3")):
        tenant = "c" if at == 850 else "b"
        tokens = 140_000 if name == "r2" else 500
        told = {"reported_prompt_tokens": 1 if at == 800 else tokens, "engine": engine}
        reports.append((at, sent(name, at, tokens, tenant=tenant, engine=engine)))
        reports.append((at + 2, answered(name, at, 40, tenant=tenant, **told)))
    return reports


def ids(reports: Sequence[Report]) -> dict[str, Finding]:
    watch = RuntimeWatch(RuntimeSettings(), WindowSettings())
    told = [finding for one in reports for finding in take(watch, one)]
    return {one.id: one for one in [*told, *watch.idle()]}


IN_ORDER = [one for _, one in sorted(bad_hour("e"), key=lambda pair: pair[0])]
EXPECTED = ids(IN_ORDER)


def test_everything_is_told_once() -> None:
    assert {one.rule for one in EXPECTED.values()} == ALL_RULES
    assert all(one.severity is RULES[one.rule].severity for one in EXPECTED.values())
    rules = sorted(one.rule for one in EXPECTED.values())
    assert [rule for rule in rules if rules.count(rule) > 1] == ["BW202", "BW202"]


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), twice=st.floats(0, 1))
def test_disorder_and_repeats_change_nothing(seed: int, twice: float) -> None:
    rng = random.Random(seed)
    reports = bad_hour("e")
    reports += [one for one in reports if rng.random() < twice]
    arrival = sorted(reports, key=lambda pair: pair[0] + rng.random() * HOLD_S * 0.99)
    assert ids([one for _, one in arrival]).keys() == EXPECTED.keys()


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_missing_scrapes_lose_no_finding(seed: int) -> None:
    rng = random.Random(seed)
    kept = [one for one in IN_ORDER if not isinstance(one, RuntimeSample) or rng.random() < 0.8]
    rules = [one.rule for one in EXPECTED.values()]
    assert sorted(one.rule for one in ids(kept).values()) == sorted(rules)


def test_an_engine_whose_clock_is_off_by_half_a_minute_is_read_the_same() -> None:
    expected = sorted(one.rule for one in EXPECTED.values())
    for skew_s in (-30, 30):
        skewed = sorted(bad_hour("e", skew_s=skew_s), key=lambda pair: pair[0])
        told = ids([one for _, one in skewed])
        assert sorted(one.rule for one in told.values()) == expected


@settings(max_examples=30, deadline=None, derandomize=True)
@given(cut=st.integers(0, len(IN_ORDER)), unacknowledged=st.integers(0, 5))
def test_a_restart_repeats_the_same_ids_and_invents_none(cut: int, unacknowledged: int) -> None:
    """The new worker reads what it needs again, and from the committed record on tells anew."""
    first = RuntimeWatch(RuntimeSettings(), WindowSettings())
    told = [finding for one in IN_ORDER[:cut] for finding in take(first, one)]
    committed = max(cut - unacknowledged, 0)
    again = max(committed - 200, 0)  # of what happens in 960 s
    second = RuntimeWatch(RuntimeSettings(), WindowSettings())
    for at in range(again, len(IN_ORDER)):
        told += take(second, IN_ORDER[at], is_news=at >= committed)
    told += second.idle()
    assert {one.id for one in told} == EXPECTED.keys()
    repeats = [one for one in told if [other.id for other in told].count(one.id) > 1]
    assert len(repeats) <= 2 * unacknowledged
