"""Every metric of a worker, in one list: name, kind, labels, meaning, and what is read.

Names are in base units and follow the rules of Prometheus; no label holds a tenant, a request, an
engine or a pool, so the number of series is bounded by partitions and fixed words. Values are read
from a `WorkerState` when the metrics are asked for; only the batch times are recorded as they pass.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from exporters.collector import Labels, Read, Samples
from exporters.worker_state import WorkerState


class Observed(NamedTuple):
    """One histogram that is fed as things happen; `buckets` are upper bounds in its unit."""

    name: str
    help: str
    buckets: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLabels:
    """Label values that are known beforehand: their series exist from the start, at zero."""

    topics: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    dead_letter_reasons: tuple[str, ...] = ()
    shared_reasons: tuple[str, ...] = ()
    row_reasons: tuple[str, ...] = ()
    blind_causes: tuple[str, ...] = ()
    findings: tuple[tuple[str, str, str], ...] = ()
    reasons: tuple[str, ...] = ()

    def of(self, name: str) -> Iterable[Labels]:
        """Return the label values of one metric."""
        one: dict[str, tuple[str, ...]] = {
            RECORDS: self.topics,
            SEQUENCES: self.kinds,
            DEAD_LETTERS: self.dead_letter_reasons,
            BLIND: self.blind_causes,
            EXPLAINED: self.reasons,
            SHARED_SHOWINGS: DIRECTIONS,
            SHARED_TAINTS: DIRECTIONS,
            SHARED_REFUSED: self.shared_reasons,
            ROWS_REFUSED: self.row_reasons,
        }
        return self.findings if name == FINDINGS else [(word,) for word in one.get(name, ())]


RECORDS = "bleedwatch_records_total"
SEQUENCES = "bleedwatch_sequences_total"
DEAD_LETTERS = "bleedwatch_dead_letters_total"
BLIND = "bleedwatch_blind_sequences_total"
FINDINGS = "bleedwatch_findings_total"
EXPLAINED = "bleedwatch_explained_shingles_total"
SHARED_SHOWINGS = "bleedwatch_shared_showings_total"
SHARED_TAINTS = "bleedwatch_shared_taints_total"
SHARED_REFUSED = "bleedwatch_shared_refused_total"
ROWS_REFUSED = "bleedwatch_rows_refused_total"
BUILD = "bleedwatch_build"
BUILD_HELP = "1; the labels are the versions of bleedwatch and Python."


DIRECTIONS = ("told", "heard")


def _one(value: float | None) -> Samples:
    return {(): value}


def _by_word(values: Mapping[str, int]) -> Samples:
    return {(word,): count for word, count in values.items()}


BATCH_SECONDS = Observed(
    "bleedwatch_batch_seconds",
    "Time to judge one batch of records, without reading and sending.",
    # from one small record to the time after which a batch is too slow for a result in seconds
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)

WORKER: tuple[Read[WorkerState], ...] = (
    # where the worker stands in its inputs
    Read(
        "bleedwatch_assigned_partitions",
        "gauge",
        "Partitions that this worker reads.",
        lambda state: _one(len(state.partitions)),
    ),
    Read(
        "bleedwatch_lag_records",
        "gauge",
        "Records of a partition that are not finished with.",
        lambda state: {(at.topic, str(at.partition)): at.lag_records for at in state.inputs},
        ("topic", "partition"),
    ),
    Read(
        "bleedwatch_lag_seconds",
        "gauge",
        "How long the oldest unfinished record of a partition has been on the broker.",
        lambda state: {(at.topic, str(at.partition)): at.lag_seconds for at in state.inputs},
        ("topic", "partition"),
    ),
    Read(
        "bleedwatch_watermark_timestamp_seconds",
        "gauge",
        "Event time up to which everything of a partition has been judged, as Unix time.",
        lambda state: {
            (str(at.partition),): None if at.watermark_ms is None else at.watermark_ms / 1000
            for at in state.partitions
        },
        ("partition",),
    ),
    Read(
        RECORDS,
        "counter",
        "Records taken from an input, those that rebuild a window included.",
        lambda state: _by_word(state.records),
        ("topic",),
    ),
    # rebuilding windows
    Read(
        "bleedwatch_warming_partitions",
        "gauge",
        "Assigned partitions whose window is still being rebuilt.",
        lambda state: _one(sum(at.warming for at in state.partitions)),
    ),
    Read(
        "bleedwatch_warmup_seconds_total",
        "counter",
        "Time spent rebuilding windows, one partition after the other.",
        lambda state: _one(state.warmup_seconds),
    ),
    Read(
        "bleedwatch_warmup_records_total",
        "counter",
        "Records read again to rebuild windows.",
        lambda state: _one(state.warmup_records),
    ),
    # what was judged
    Read(
        SEQUENCES,
        "counter",
        "Prompts and responses judged.",
        lambda state: _by_word(state.sequences),
        ("kind",),
    ),
    Read(
        "bleedwatch_tokens_total",
        "counter",
        "Tokens judged, of prompts and responses.",
        lambda state: _one(state.tokens),
    ),
    Read(
        FINDINGS,
        "counter",
        "Findings sent; a surer version of an earlier one counts again.",
        lambda state: dict(state.findings.items()),
        ("rule", "severity", "confidence"),
    ),
    Read(
        "bleedwatch_response_shingles_total",
        "counter",
        "Shingles of responses judged.",
        lambda state: _one(state.response_shingles),
    ),
    Read(
        "bleedwatch_overlapping_shingles_total",
        "counter",
        "Shingles of responses that other tenants have shown as well, explained or not.",
        lambda state: _one(state.overlapping_shingles),
    ),
    Read(
        "bleedwatch_unexplained_shingles_total",
        "counter",
        "Shingles of responses that another tenant has shown and nothing explains.",
        lambda state: _one(state.unexplained_shingles),
    ),
    Read(
        EXPLAINED,
        "counter",
        "Shingles of responses that another tenant has shown, by what explains them; winnowed, "
        "those of the sample.",
        lambda state: _by_word(state.explained),
        ("reason",),
    ),
    # what the worker holds
    Read(
        "bleedwatch_index_postings",
        "gauge",
        "Postings in the window of a partition.",
        lambda state: {(str(at.partition),): at.postings for at in state.partitions},
        ("partition",),
    ),
    Read(
        "bleedwatch_index_bytes",
        "gauge",
        "Memory of the index of a partition.",
        lambda state: {(str(at.partition),): at.index_bytes for at in state.partitions},
        ("partition",),
    ),
    Read(
        "bleedwatch_learning",
        "gauge",
        "1 while the memory of what is common reaches back too little: findings are low then.",
        lambda state: _one(state.learning),
    ),
    Read(
        "bleedwatch_commonness_bytes",
        "gauge",
        "Memory held for what is common.",
        lambda state: _one(state.commonness_bytes),
    ),
    Read(
        "bleedwatch_commonness_reach_seconds",
        "gauge",
        "How far back in event time the memory of what is common reaches.",
        lambda state: _one(state.commonness_reach_seconds),
    ),
    Read(
        "bleedwatch_commonness_shortened_total",
        "counter",
        "Times the byte budget made the memory of what is common shorter than asked for.",
        lambda state: _one(state.commonness_shortened),
    ),
    # what workers tell each other
    Read(
        "bleedwatch_shared_range_bytes",
        "gauge",
        "Memory held for a range of shingles whose showings this worker collects for all.",
        lambda state: {(str(at.partition),): at.table_bytes for at in state.sharing.ranges},
        ("partition",),
    ),
    Read(
        "bleedwatch_shared_range_reach_seconds",
        "gauge",
        "How far back in event time such a range reaches.",
        lambda state: {(str(at.partition),): at.reach_seconds for at in state.sharing.ranges},
        ("partition",),
    ),
    Read(
        SHARED_SHOWINGS,
        "counter",
        "Showings of shingles told to other workers and heard from them.",
        lambda state: _by_word(state.sharing.showings),
        ("direction",),
    ),
    Read(
        SHARED_TAINTS,
        "counter",
        "Tainted shingles told to other workers and heard from them.",
        lambda state: _by_word(state.sharing.taints),
        ("direction",),
    ),
    Read(
        SHARED_REFUSED,
        "counter",
        "Records of other workers that were not used.",
        lambda state: _by_word(state.sharing.refused),
        ("reason",),
    ),
    # what could not be seen
    Read(
        "bleedwatch_evicted_sketches_total",
        "counter",
        "Sketches of responses given up inside the window for want of memory: copies across pools.",
        lambda state: _one(state.sharing.evicted_sketches),
    ),
    Read(
        "bleedwatch_evicted_sequences_total",
        "counter",
        "Sequences given up inside the window for want of memory: lost recall.",
        lambda state: _one(state.evicted_sequences),
    ),
    Read(
        "bleedwatch_late_sequences_total",
        "counter",
        "Sequences that came more than the grace after their request can have ended.",
        lambda state: _one(state.late_sequences),
    ),
    Read(
        "bleedwatch_forced_sequences_total",
        "counter",
        "Sequences judged before their turn because too many tokens were held.",
        lambda state: _one(state.forced_sequences),
    ),
    Read(
        "bleedwatch_clock_jumps_total",
        "counter",
        "Sequences dated hours away from those around them.",
        lambda state: _one(state.clock_jumps),
    ),
    Read(
        DEAD_LETTERS,
        "counter",
        "Records that could not be read and went to the dead-letter topic.",
        lambda state: _by_word(state.dead_letters),
        ("reason",),
    ),
    Read(
        ROWS_REFUSED,
        "counter",
        "Rows of requests that could not be packed.",
        lambda state: _by_word(state.rows_refused),
        ("reason",),
    ),
    Read(
        "bleedwatch_key_file_unreadable",
        "gauge",
        "1 while a key file cannot be read: the keys that it held before stay in use.",
        lambda state: _one(state.key_file_unreadable),
    ),
    Read(
        BLIND,
        "counter",
        "Prompts and responses that could not be judged.",
        lambda state: _by_word(state.blind),
        ("cause",),
    ),
)
