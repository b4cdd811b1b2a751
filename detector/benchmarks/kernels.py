"""The kernels against their peers: sketches, fingerprints, the window index, all end to end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from detector.backend import Backend, NumbaBackend, NumpyBackend
from detector.benchmarks import end_to_end, index_step, peers
from detector.benchmarks.harness import Timing, Work, interleave, ratio
from detector.benchmarks.workload import token_batch
from detector.sketch.batch import TokenBatch
from detector.sketch.header import SketchHeader

Row = dict[str, object]
Progress = Callable[[str], None]

LENGTH: Final = 1_000
"""Tokens per response in the main tables."""

LENGTHS: Final = (1_000, 10_000, 100_000)
RESIDENT: Final = (1_000_000, 10_000_000)
WINDOW: Final = 8
MIN_DISTINCT: Final = 6

ROUNDS: Final = 15
SKETCH_SECONDS: Final = 5.0
FINGERPRINT_SECONDS: Final = 2.0
INDEX_SECONDS: Final = 3.0
"""Per table; together with filling the indexes the whole stays under 50 s on two shared cores."""

SETTLING: Final = 1.0
"""Windows that pass before the index is measured: while rows of gone sequences first pile up it
still grows, a dict has its size at once."""

_FEW: Final = 20
"""Responses given to the peers that need tens of milliseconds for one."""


@dataclass(slots=True)
class Report:
    """Rows for a table, and the ratios that are held to a target."""

    rows: list[Row] = field(default_factory=list)
    ratios: dict[str, float] = field(default_factory=dict)

    def add(self, group: str, timings: Mapping[str, Timing], *, unit: str, ours: str) -> None:
        """Add one row per contestant, with how many times faster `ours` is."""
        for name, timing in timings.items():
            low, high = timing.spread
            self.rows.append(
                {
                    "group": group, "contestant": name, "unit": unit,
                    "ns_median": round(timing.median, 2),
                    "ns_p10": round(low, 2), "ns_p90": round(high, 2),
                    "ours_is_faster_by": round(ratio(timings, name, ours), 2),
                    "rounds": len(timing.rounds),
                }
            )  # fmt: skip

    def missing(self, group: str, modules: tuple[str, ...]) -> None:
        """Add a row for every peer that is not installed."""
        for module in modules:
            if not peers.installed(module):
                self.rows.append({"group": group, "contestant": module, "unit": "not installed"})


def run_kernels(*, on_progress: Progress = lambda _: None) -> Report:
    """Measure everything and return the report; about 45 s on one core."""
    report = Report()
    on_progress("sketches")
    _sketches(report)
    for length in LENGTHS:
        on_progress(f"fingerprints of {length:,} tokens")
        _fingerprints(report, length)
    for live in RESIDENT:
        on_progress(f"index of {live:,} postings")
        _index(report, live)
    on_progress("end to end")
    add_end_to_end(report, end_to_end.SHORT)
    return report


def run_long_end_to_end(*, on_progress: Progress = lambda _: None) -> Report:
    """Measure end to end with more than four million live postings; minutes on one core."""
    report = Report()
    on_progress("end to end")
    add_end_to_end(report, end_to_end.LONG)
    return report


def add_end_to_end(report: Report, scale: end_to_end.Scale) -> None:
    """Add the timings end to end and, beside each, the planted runs found."""
    group = f"end to end, {scale.winnowed:,} and {scale.every:,} responses live"
    measured = end_to_end.run_end_to_end(scale)
    report.add(group, measured.timings, unit="ns/token", ours=end_to_end.OURS)
    report.missing(group, ("datasketch", "rensa", "FastSketchLSH"))
    report.ratios |= measured.ratios()
    for name, recall in measured.recall.items():
        found = ", ".join(f"{length}: {share:.2f}" for length, share in recall.items())
        row: Row = {"group": "planted runs found, by tokens", "contestant": name, "unit": found}
        report.rows.append(row)


def _sketches(report: Report) -> None:
    group, ours = "MinHash, 128 values", "numba, as datasketch"
    batch = token_batch(200 * LENGTH, length=LENGTH, seed=1)
    few = TokenBatch(batch.tokens[: _FEW * LENGTH], batch.offsets[: _FEW + 1], batch.table)
    found = NumbaBackend().fingerprints(batch, window=1, min_distinct=1)
    header = SketchHeader()

    def sketch(backend: Backend) -> int:
        backend.signatures(found.keys, found.offsets, header)
        return len(found.keys)

    contestants: dict[str, Work] = {
        ours: partial(sketch, NumbaBackend()),
        "numpy, as datasketch": partial(_numpy_sketch, few, header),
        **peers.sketchers(few, found.keys, found.offsets),
    }
    timings = interleave(contestants, rounds=ROUNDS, seconds=SKETCH_SECONDS)
    report.add(group, timings, unit="ns/shingle", ours=ours)
    report.missing(group, ("datasketch", "rensa", "FastSketchLSH"))
    if "datasketch bulk, xxh32" in timings:
        report.ratios["minhash_vs_datasketch_bulk"] = ratio(timings, "datasketch bulk, xxh32", ours)


def _numpy_sketch(few: TokenBatch, header: SketchHeader) -> int:
    backend = NumpyBackend()
    found = backend.fingerprints(few, window=1, min_distinct=1)
    backend.signatures(found.keys, found.offsets, header)
    return len(found.keys)


def _fingerprints(report: Report, length: int) -> None:
    batch = token_batch(400_000, length=length, seed=2)
    few = token_batch(max(_FEW * LENGTH, length), length=length, seed=2)

    def pick(backend: Backend, window: int) -> int:
        backend.fingerprints(batch, window=window, min_distinct=MIN_DISTINCT)
        return len(batch.tokens)

    ours = "numba, winnow 8"
    timings = interleave(
        {
            ours: partial(pick, NumbaBackend(), WINDOW),
            "numba, every shingle": partial(pick, NumbaBackend(), 1),
            "numpy, winnow 8": partial(pick, NumpyBackend(), WINDOW),
            "Python loop of xxh3, nothing else": partial(peers.python_loop, few),
        },
        rounds=ROUNDS,
        seconds=FINGERPRINT_SECONDS,
    )
    report.add(f"ids to fingerprints, {length:,} tokens", timings, unit="ns/token", ours=ours)
    if length == LENGTH:
        loop = ratio(timings, "Python loop of xxh3, nothing else", ours)
        report.ratios["ids_to_fingerprints_vs_python_loop"] = loop
        report.ratios["ids_to_fingerprints_vs_numpy"] = ratio(timings, "numpy, winnow 8", ours)


def _index(report: Report, live: int) -> None:
    group, ours = f"window index, {live:,} live postings", "posting index"
    traffic = index_step.Traffic(3)
    index, plain = index_step.OurIndex(live), index_step.DictIndex(live)
    resident = np.empty((live // index_step.SEQUENCE_KEYS, index_step.SEQUENCE_KEYS), np.int64)
    for row in resident:
        number, owner, row[:] = traffic.sequence()
        index.fill(number, owner, row)
    for _ in range(int(len(resident) * SETTLING)):
        index.fill(*traffic.sequence())
    plain.fill(resident)
    rounds = ROUNDS + 1
    timings = interleave(
        {
            ours: index_step.stepper(index.step, traffic, rounds=rounds),
            "Python dict and queue": index_step.stepper(plain.step, traffic, rounds=rounds),
            **index_step.joins(resident.ravel()),
        },
        rounds=ROUNDS,
        seconds=INDEX_SECONDS,
    )
    report.add(group, timings, unit="ns/posting", ours=ours)
    report.missing(group, ("polars", "duckdb"))
    millions = live // 1_000_000
    report.ratios[f"index_vs_dict_{millions}m"] = ratio(timings, "Python dict and queue", ours)
    report.ratios["index_vs_dict"] = report.ratios[f"index_vs_dict_{millions}m"]
    for engine in ("polars", "duckdb"):
        name = f"{engine} join (lookup only)"
        if name in timings:
            report.ratios[f"index_vs_{engine}_{millions}m"] = ratio(timings, name, ours)
    report.rows.append(
        {"group": group, "contestant": ours, "unit": "bytes/posting",
         "ns_median": round(index.bytes_per_posting(), 1)}
    )  # fmt: skip
    report.rows.append(
        {"group": group, "contestant": ours, "unit": "ns, longest step while filling",
         "ns_median": round(1e6 * index.longest_ms)}
    )  # fmt: skip
