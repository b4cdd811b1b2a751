"""Metrics: names obey Prometheus, values are those of the state, known series start at zero."""

import re

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from exporters.collector import Read
from exporters.metrics import BATCH_SECONDS, WORKER, KnownLabels
from exporters.worker_metrics import WorkerMetrics
from exporters.worker_state import (
    InputState,
    PartitionState,
    RangeState,
    SharingState,
    WorkerState,
)

KNOWN = KnownLabels(
    topics=("sequences", "runtime"),
    kinds=("prompt", "response"),
    dead_letter_reasons=("seal_broken",),
    shared_reasons=("wrong_range",),
    row_reasons=("too_large",),
    blind_causes=("no_tokens",),
    findings=(("BW001", "high", "high"), ("BW001", "info", "low")),
    reasons=("common",),
)

STATE = WorkerState(
    assigned=True,
    partitions=(
        PartitionState(partition=0, watermark_ms=1_500, postings=7, index_bytes=640),
        PartitionState(partition=3, warming=True),
    ),
    inputs=(
        InputState(topic="sequences", partition=0, lag_records=2, lag_seconds=0.5),
        InputState(topic="sequences", partition=3),
    ),
    records={"sequences": 11},
    sequences={"response": 5},
    tokens=900,
    warmup_records=4,
    warmup_seconds=0.25,
    evicted_sequences=1,
    late_sequences=2,
    forced_sequences=3,
    clock_jumps=4,
    dead_letters={"truncated": 6},
    rows_refused={"unencodable": 17},
    key_file_unreadable=True,
    blind={"other_key": 8},
    findings={("BW001", "high", "high"): 9},
    response_shingles=850,
    overlapping_shingles=40,
    unexplained_shingles=12,
    explained={"template": 28},
    learning=False,
    commonness_bytes=4_096,
    commonness_reach_seconds=7_200.0,
    commonness_shortened=1,
    sharing=SharingState(
        ranges=(RangeState(partition=3, table_bytes=128, reach_seconds=60.0),),
        showings={"told": 13, "heard": 14},
        taints={"heard": 15},
        refused={"malformed": 16},
        evicted_sketches=18,
    ),
)

_BASE_UNITS = re.compile(r"_(ms|millis\w*|micros\w*|minutes|hours|kb|mb|kib|mib|kilo\w*|mega\w*)\b")
"""Units that are no base units: Prometheus counts seconds and bytes."""

_OF_OTHER_TYPES = re.compile(r"_(bucket|count|sum|created|gauge|counter|histogram|summary)\b")


_LABELS = {metric.name: metric.labels for metric in WORKER}


class _Source:
    """A worker at rest in a given state."""

    def __init__(self, state: WorkerState) -> None:
        self._state = state

    def state(self) -> WorkerState:
        return self._state


def scraped(state: WorkerState) -> dict[str, Metric]:
    """Return what Prometheus would read, by the name of the family."""
    registry = CollectorRegistry()
    WorkerMetrics(_Source(state), registry=registry, known=KNOWN)
    text = generate_latest(registry).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def values(state: WorkerState) -> dict[tuple[str, ...], float]:
    """Return every sample: its name and label values, as the list orders them, to its value."""
    return {
        (sample.name, *(sample.labels[at] for at in _LABELS.get(sample.name, ()))): sample.value
        for family in scraped(state).values()
        for sample in family.samples
    }


def test_values_are_those_of_the_state() -> None:
    seen = values(STATE)
    assert seen["bleedwatch_assigned_partitions",] == 2
    assert seen["bleedwatch_warming_partitions",] == 1
    assert seen["bleedwatch_lag_records", "sequences", "0"] == 2
    assert seen["bleedwatch_lag_seconds", "sequences", "0"] == 0.5
    assert seen["bleedwatch_watermark_timestamp_seconds", "0"] == 1.5
    assert seen["bleedwatch_index_postings", "0"] == 7
    assert seen["bleedwatch_index_bytes", "0"] == 640
    assert seen["bleedwatch_records_total", "sequences"] == 11
    assert seen["bleedwatch_sequences_total", "response"] == 5
    assert seen["bleedwatch_tokens_total",] == 900
    assert seen["bleedwatch_warmup_records_total",] == 4
    assert seen["bleedwatch_warmup_seconds_total",] == 0.25
    assert seen["bleedwatch_evicted_sequences_total",] == 1
    assert seen["bleedwatch_late_sequences_total",] == 2
    assert seen["bleedwatch_forced_sequences_total",] == 3
    assert seen["bleedwatch_clock_jumps_total",] == 4
    assert seen["bleedwatch_dead_letters_total", "truncated"] == 6
    assert seen["bleedwatch_blind_sequences_total", "other_key"] == 8
    assert seen["bleedwatch_findings_total", "BW001", "high", "high"] == 9
    assert seen["bleedwatch_response_shingles_total",] == 850
    assert seen["bleedwatch_overlapping_shingles_total",] == 40
    assert seen["bleedwatch_unexplained_shingles_total",] == 12
    assert seen["bleedwatch_explained_shingles_total", "template"] == 28
    assert seen["bleedwatch_learning",] == 0
    assert seen["bleedwatch_commonness_bytes",] == 4_096
    assert seen["bleedwatch_commonness_reach_seconds",] == 7_200
    assert seen["bleedwatch_commonness_shortened_total",] == 1
    assert seen["bleedwatch_shared_range_bytes", "3"] == 128
    assert seen["bleedwatch_shared_range_reach_seconds", "3"] == 60
    assert seen["bleedwatch_shared_showings_total", "told"] == 13
    assert seen["bleedwatch_shared_taints_total", "heard"] == 15
    assert seen["bleedwatch_shared_refused_total", "malformed"] == 16
    assert seen["bleedwatch_rows_refused_total", "unencodable"] == 17
    assert seen["bleedwatch_evicted_sketches_total",] == 18
    assert seen["bleedwatch_key_file_unreadable",] == 1


def test_what_is_not_known_is_left_out() -> None:
    seen = values(STATE)
    assert ("bleedwatch_lag_records", "sequences", "3") not in seen
    assert ("bleedwatch_watermark_timestamp_seconds", "3") not in seen


def test_known_series_exist_before_anything_has_happened() -> None:
    seen = values(WorkerState())
    for series in (
        ("bleedwatch_records_total", "runtime"),
        ("bleedwatch_sequences_total", "prompt"),
        ("bleedwatch_dead_letters_total", "seal_broken"),
        ("bleedwatch_shared_refused_total", "wrong_range"),
        ("bleedwatch_rows_refused_total", "too_large"),
        ("bleedwatch_key_file_unreadable",),
        ("bleedwatch_blind_sequences_total", "no_tokens"),
        ("bleedwatch_findings_total", "BW001", "info", "low"),
        ("bleedwatch_explained_shingles_total", "common"),
    ):
        assert seen[series] == 0


def test_the_build_is_told() -> None:
    (sample,) = scraped(STATE)["bleedwatch_build_info"].samples
    assert set(sample.labels) == {"version", "python"}


def test_batch_times_are_recorded() -> None:
    registry = CollectorRegistry()
    metrics = WorkerMetrics(_Source(STATE), registry=registry, known=KNOWN)
    metrics.batch_seconds.observe(0.3)
    assert registry.get_sample_value(f"{BATCH_SECONDS.name}_bucket", {"le": "0.25"}) == 0
    assert registry.get_sample_value(f"{BATCH_SECONDS.name}_bucket", {"le": "0.5"}) == 1


def test_the_process_tells_its_memory() -> None:
    assert values(STATE)["process_resident_memory_bytes",] > 0


def test_two_workers_in_one_process_need_two_registries() -> None:
    registry = CollectorRegistry()
    WorkerMetrics(_Source(STATE), registry=registry, known=KNOWN)
    with pytest.raises(ValueError, match="Duplicated"):
        WorkerMetrics(_Source(STATE), registry=registry, known=KNOWN)


@pytest.mark.parametrize("metric", [*WORKER, BATCH_SECONDS], ids=lambda metric: str(metric.name))
def test_names_follow_the_rules_of_prometheus(metric: Read[WorkerState]) -> None:
    assert re.fullmatch(r"bleedwatch(_[a-z]+)+", metric.name)
    assert not _BASE_UNITS.search(metric.name)
    assert not _OF_OTHER_TYPES.search(metric.name)
    assert metric.name.endswith("_total") == (getattr(metric, "kind", "") == "counter")
    assert metric.help.endswith(".")


@pytest.mark.parametrize("metric", WORKER, ids=lambda metric: str(metric.name))
def test_labels_are_bounded_and_name_nobody(metric: Read[WorkerState]) -> None:
    words = {"topic", "kind", "rule", "severity", "confidence", "reason", "cause", "direction"}
    assert set(metric.labels) <= words | {"partition"}
