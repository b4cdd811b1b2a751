"""What a worker shows of itself at one moment; the metrics and the health checks read nothing else.

A state holds counts, sizes and times only: no name of a tenant, request, engine or pool.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class InputState:
    """How far a worker is behind in one partition of one topic; None is unknown yet."""

    topic: str
    partition: int
    lag_records: int | None = None
    """Records of the partition that are not finished with."""
    lag_seconds: float | None = None
    """How long the oldest of them has been there, by the broker's time stamp; 0 without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """One assigned partition: its window and how far event time has come."""

    partition: int
    warming: bool = False
    """True while its window is being rebuilt."""
    watermark_ms: int | None = None
    """Everything up to this event time has been judged, None before the first record."""
    postings: int = 0
    """Postings in the index; those that have just expired count until they are swept."""
    index_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeState:
    """One range of shingles whose showings this worker collects for all."""

    partition: int
    table_bytes: int = 0
    reach_seconds: float = 0.0
    """How far back in event time it reaches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingState:
    """What workers tell each other about what is common."""

    ranges: tuple[RangeState, ...] = ()
    showings: Mapping[str, int] = field(default_factory=dict)
    """Showings of shingles exchanged, by direction: told, heard."""
    taints: Mapping[str, int] = field(default_factory=dict)
    """Tainted shingles exchanged, by direction."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Records of other workers that could not be read, by reason."""
    evicted_sketches: int = 0
    """Sketches of responses given up inside the window for want of memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerState:
    """One worker process. Counts are since its start, those of partitions it has lost included."""

    assigned: bool = False
    """True once the group has said which partitions are ours, be it none."""
    partitions: tuple[PartitionState, ...] = ()
    inputs: tuple[InputState, ...] = ()
    records: Mapping[str, int] = field(default_factory=dict)
    """Records taken, by topic."""
    sequences: Mapping[str, int] = field(default_factory=dict)
    """Sequences judged, by kind."""
    tokens: int = 0
    warmup_records: int = 0
    warmup_seconds: float = 0.0
    evicted_sequences: int = 0
    late_sequences: int = 0
    forced_sequences: int = 0
    """Sequences judged before their turn because too many tokens were held."""
    clock_jumps: int = 0
    dead_letters: Mapping[str, int] = field(default_factory=dict)
    """Records that could not be read, by reason."""
    rows_refused: Mapping[str, int] = field(default_factory=dict)
    """Rows of requests that could not be packed, by reason."""
    key_file_unreadable: bool = False
    """True while a key file cannot be read: the keys that it held before stay in use."""
    blind: Mapping[str, int] = field(default_factory=dict)
    """Prompts and responses that could not be judged, by cause."""
    findings: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """Findings by rule, severity and confidence."""
    response_shingles: int = 0
    overlapping_shingles: int = 0
    unexplained_shingles: int = 0
    explained: Mapping[str, int] = field(default_factory=dict)
    """Matched shingles that something explains, by reason."""
    learning: bool = True
    commonness_bytes: int = 0
    commonness_reach_seconds: float = 0.0
    """How far back in event time the memory of what is common reaches without a gap."""
    commonness_shortened: int = 0
    """Times the byte budget made that memory shorter."""
    sharing: SharingState = SharingState()


class StateSource(Protocol):
    """Whoever can say how a worker is doing."""

    def state(self) -> WorkerState:
        """Return the state, its counts a second old at most; cheap, and from any thread."""
        ...
