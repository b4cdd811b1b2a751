"""From what an engine answered to the plain quantities of each of its ranks.

Nothing is derived here, and nothing is made up: what is not there, or is no number that it can be,
is left out.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from detector.errors import ScrapeError
from ingest.limits import MAX_COUNT
from ingest.scrape.documents import at_path, rank_entries
from ingest.scrape.exposition import Exposition, Sample
from ingest.scrape.mapping import CounterTerm, Document, Mapping, NumberSource

ENGINE_WIDE: Final = frozenset(
    {"configured_pool_tokens", "context_tokens", "max_input_tokens", "block_tokens"}
)
"""Numbers that are the same for every rank, whether or not their series say so."""

MAX_RANKS: Final = 1024
"""Most data-parallel ranks of one server; deployments have up to some hundred."""


@dataclass(slots=True)
class RankReading:
    """What one rank said. `waits` counts what keeps it busy besides running and queued requests."""

    rank: int
    numbers: dict[str, float] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    restarts: dict[str, float] = field(default_factory=dict)
    waits: float = 0.0
    has_metrics: bool = False
    has_connector: bool = False
    is_in_step: bool = True
    """False if its metrics tell another fill than its fresher view: they are of earlier, and so is
    what they tell of sessions."""


Documents = Sequence[tuple[Document, object]]
"""The JSON documents that were answered, in the order of the mapping."""


def read_ranks(
    mapping: Mapping, metrics: Exposition | None, documents: Documents
) -> list[RankReading]:
    """Return a reading for each rank, lowest first. Raises ScrapeError for too many ranks."""
    groups = _grouped(mapping, metrics)
    listed = {
        rank: (document, entry)
        for document, content in documents
        if document.ranks is not None
        for rank, entry in rank_entries(content, document.ranks)
    }
    ranks = sorted({rank for group in groups.values() for rank in group if rank is not None})
    ranks = sorted({*ranks, *listed}) or [0]
    if len(ranks) > MAX_RANKS:
        raise ScrapeError("malformed", f"more than {MAX_RANKS} ranks of one engine")
    readings = []
    for position, rank in enumerate(ranks):
        one = RankReading(rank, has_metrics=metrics is not None)
        if metrics is not None:
            own = _Series(groups, rank, is_only=len(ranks) == 1, is_first=position == 0)
            _from_metrics(one, mapping, metrics, own)
        _from_documents(one, documents)
        if rank in listed:
            _from_entry(one, *listed[rank])
        readings.append(one)
    return readings


Groups = dict[str, dict[int | None, list[Sample]]]
"""Samples by metric and rank; None: the series names none."""


@dataclass(frozen=True, slots=True)
class _Series:
    """The series of one rank."""

    groups: Groups
    rank: int
    is_only: bool
    is_first: bool

    def of(self, name: str, *, is_wide: bool = False) -> list[Sample]:
        """Return those of the rank; series without a rank are those of the only one."""
        by_rank = self.groups.get(name, {})
        if self.rank in by_rank:
            return by_rank[self.rank]
        return by_rank.get(None, []) if self.is_only or is_wide else []

    def counted(self, name: str) -> list[Sample] | None:
        """Return the series of a counter; None if it is the engine's as a whole.

        Series without a rank count for the first rank; they say nothing of the others.
        """
        by_rank = self.groups.get(name, {})
        own, shared = by_rank.get(self.rank, []), by_rank.get(None, [])
        if not self.is_first and shared and not own:
            return None
        return own + (shared if self.is_first else [])


def _grouped(mapping: Mapping, metrics: Exposition | None) -> Groups:
    groups: Groups = {}
    if metrics is None:
        return groups
    for name, samples in metrics.samples.items():
        by_rank: dict[int | None, list[Sample]] = {}
        for sample in samples:
            label = sample.labels.get(mapping.rank_label or "", "")
            rank = int(label) if label.isascii() and label.isdigit() else None
            by_rank.setdefault(rank, []).append(sample)
        groups[name] = {
            rank: _without_replicas(mapping.replica_labels, those)
            for rank, those in by_rank.items()
        }
    return groups


def _without_replicas(labels: Sequence[str], samples: list[Sample]) -> list[Sample]:
    """Return the series of the lowest replica: the others tell the same pool again."""
    keys = [tuple(_number(one.labels.get(label, "")) for label in labels) for one in samples]
    lowest = min(keys)
    return [one for one, key in zip(samples, keys, strict=True) if key == lowest]


def _number(label: str) -> int:
    return int(label) if label.isascii() and label.isdigit() else -1


def _from_metrics(one: RankReading, mapping: Mapping, metrics: Exposition, series: _Series) -> None:
    for quantity, source in mapping.numbers.items():
        value = _gauge(source, series, is_wide=quantity in ENGINE_WIDE)
        if value is not None:
            one.numbers[quantity] = value
    one.waits = sum(
        sample.value for name in mapping.busy for sample in series.of(name) if sample.value > 0
    )
    for counter, terms in mapping.counters.items():
        total = _counted(terms, series, metrics.names)
        if total is not None:
            one.counters[counter] = total
    for name in mapping.restarts:
        samples = series.counted(name)
        if samples:
            one.restarts[name] = sum(sample.value for sample in samples)
    one.has_connector = any(
        name.startswith(prefix) for prefix in mapping.connector_prefixes for name in metrics.names
    )


def _gauge(source: NumberSource, series: _Series, *, is_wide: bool) -> float | None:
    highest = [
        value
        for name in source.highest_of
        if (value := _one(series.of(name, is_wide=is_wide), source.label)) is not None
    ]
    if highest:
        return max(highest)
    for name in source.names:
        value = _one(series.of(name, is_wide=is_wide), source.label)
        if value is not None:
            return value
    return None


def _one(samples: Iterable[Sample], label: str | None) -> float | None:
    """Return the value of a gauge; None without one, and if series disagree on it."""
    values = {one.value if label is None else _parsed(one.labels.get(label, "")) for one in samples}
    value = values.pop() if len(values) == 1 else None
    return value if value is not None and is_quantity(value) else None


def _parsed(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _counted(terms: Sequence[CounterTerm], series: _Series, names: frozenset[str]) -> int | None:
    """Return a sum of counters; None if the engine has none of them.

    A series with labels comes to be with its first event: where the metric is there and the series
    is not, nothing has happened yet.
    """
    totals = []
    for term in terms:
        there = [name for name in term.names if name in names]
        if not there:
            continue
        samples = series.counted(there[0])
        if samples is None:
            continue
        values = [
            one.value
            for one in samples
            if all(one.labels.get(label) in allowed for label, allowed in term.where.items())
        ]
        if all(is_quantity(value) for value in values):
            totals.append(int(sum(values)))
    return sum(totals) if totals else None


def is_quantity(value: float) -> bool:
    """Tell what can be a size, a count or a share from what cannot."""
    return math.isfinite(value) and 0 <= value <= MAX_COUNT


def _from_documents(one: RankReading, documents: Documents) -> None:
    for document, content in documents:
        for quantity, path in document.values.items():
            _take(one, quantity, at_path(content, path), replaces=False)


def _from_entry(one: RankReading, document: Document, entry: object) -> None:
    ranks = document.ranks
    if ranks is None:
        return
    used = one.numbers.get("used_tokens")
    for quantity, path in ranks.values.items():
        _take(one, quantity, at_path(entry, path), replaces=True)
    one.is_in_step = used is None or used == one.numbers["used_tokens"]
    for path in ranks.busy:
        value = at_path(entry, path)
        if isinstance(value, int | float) and value > 0:
            one.waits += value


def _take(one: RankReading, quantity: str, value: object, *, replaces: bool) -> None:
    """Keep a value of a document.

    What a rank says replaces metrics, which are older; what the engine says only fills gaps.
    """
    if isinstance(value, str) and value:
        one.texts.setdefault(quantity, value)
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_quantity(value):
        return
    if replaces or quantity not in one.numbers:
        one.numbers[quantity] = float(value)
