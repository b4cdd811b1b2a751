"""What one worker process has counted since it started, partitions it has lost included."""

from collections import Counter
from dataclasses import dataclass, field, fields

from detector.pipeline import DetectorStats
from detector.streaming.partition import Partition


@dataclass(slots=True)
class Tally:
    """Counts of the process. Messages that only rebuild a window count in `warmup_records` only."""

    records: Counter[str] = field(default_factory=Counter)
    """Messages by topic."""
    sequences: Counter[str] = field(default_factory=Counter)
    """By kind."""
    tokens: int = 0
    without_tokens: Counter[str] = field(default_factory=Counter)
    """Prompts and responses that came without token ids, by kind."""
    warmup_records: int = 0
    warmup_seconds: float = 0.0
    dead_letters: Counter[str] = field(default_factory=Counter)
    """Records by reason."""
    rows_refused: Counter[str] = field(default_factory=Counter)
    """Rows of requests that could not be packed, by reason."""
    findings: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """By rule, severity and confidence."""


@dataclass(slots=True)
class Totals:
    """What orderings and detectors have counted, added up."""

    late: int = 0
    forced: int = 0
    clock_jumps: int = 0
    evicted: int = 0
    stats: DetectorStats = field(default_factory=DetectorStats)
    explained: Counter[str] = field(default_factory=Counter)

    def add(self, window: Partition) -> None:
        """Add what one partition has counted."""
        order, detector = window.sequencer, window.detector
        self.late += order.late
        self.forced += order.forced
        self.clock_jumps += order.clock_jumps
        self.evicted += detector.evicted_sequences
        self.explained.update(detector.explained)
        for one in fields(DetectorStats):
            total = getattr(self.stats, one.name) + getattr(detector.stats, one.name)
            setattr(self.stats, one.name, total)
