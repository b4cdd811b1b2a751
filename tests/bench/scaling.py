"""What a cluster needs at a rate of tokens, by formulas over measured figures: `make scaling`.

docs/scaling.md holds what this prints, and says where each figure was measured; a test compares
them. Nothing here measures: `make soak-stream WORKERS=2`, `make two-workers` and `make bench` do.
"""

import argparse
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

MIB: Final = 2**20
GIB: Final = 2**30
MB: Final = 10**6

CPU_US: Final = {"every": 1.36, "winnow": 0.74}
"""CPU of a worker with full batches for a token, by sampling: one worker on one core."""

POSTINGS: Final = {"every": 1.0, "winnow": 2 / 9}
"""Postings for a token: every shingle, or winnowing with w = 8."""

REMEMBERED: Final = {"every": 1.0, "winnow": 0.5}
"""Of the shingles those that are remembered and told: every one, or the sample with w = 8."""

POSTING_BYTES: Final = 33.6
HASH_BYTES: Final = 4
"""Of a token, as long as its sequence is in the window."""

KEY_BYTES: Final = 35.0
"""Of a shingle that is remembered: 27 to 55 while a table grows, this fits the runs below best."""

REACH_KEY_BYTES: Final = 49.2
"""Budget for a shingle that is remembered for sure: 1 GiB changes generations at 21.8 million."""

PROCESS_BYTES: Final = 300 * MIB
MERGE_US: Final = 0.125
"""CPU for one mark of a shared shingle that a worker hears of."""

MARKS: Final = 0.02
"""Marks that owners tell, for a token of the cluster; each worker hears all of them."""

KEEP_S: Final = 960
"""Window, longest response and grace of the defaults."""

SEQUENCE_BYTES: Final = 2.41
SHOWING_BYTES: Final = 8.1
MARK_BYTES: Final = 20
"""On the wire: for a token, for a shingle that is new to its tenant, for a mark."""

DAY_S: Final = 86_400
REPLICAS: Final = 3
ROW_US: Final = 47
"""CPU of the api for the row of a request."""

BUSY: Final = 0.7
"""Share of its core that a worker may be planned with: a move is read again at full speed."""


class Load(NamedTuple):
    """What comes in. `new` is the share of shingles that are new to their tenant.

    `reach_s` is how far back the memory of what is common must reach: below
    `detection.commonness.learning_ms` every finding is low.
    """

    tokens_per_second: float
    new: float = 0.42
    reach_s: float = 3_600
    request_tokens: int = 1_500
    pool_tokens_per_second: float = 10_000


class Plan(NamedTuple):
    """What it takes, over all workers unless it says otherwise."""

    workers: int
    partitions: int
    pools: int
    cpu_us: float
    """For a token."""
    busiest: float
    """Load of the busiest worker beside the mean, by chance of where pools fall."""
    worker_bytes: float
    """Memory of one worker."""
    common_bytes: float
    """Of it, `detection.commonness.memory_bytes`."""
    range_bytes: float
    """`detection.commonness.range_memory_bytes`, for one partition."""
    index_bytes: float
    """`detection.index.memory_bytes`: each partition has an equal part of it, whoever reads it."""
    into_broker: float
    out_of_broker: float
    """Bytes a second, before replication."""
    disk_bytes: float
    """With replicas, at the default retention."""
    api_cores: float


def cpu_us(sampling: str, workers: int) -> float:
    """Return the CPU for a token: judging it, and its share of what all workers hear."""
    return CPU_US[sampling] + MERGE_US * MARKS * workers


def busiest(pools: int, workers: int) -> float:
    """Return about how much more than the mean the busiest worker gets of pools alike."""
    if workers == 1:
        return 1.0
    spread = math.sqrt(2 * math.log(workers) * workers / pools)
    return 1 + spread


def memory(
    *, workers: int, tokens_kept: float, sampling: str, shown: float, common: float, ranges: float
) -> float:
    """Return the memory of all workers together.

    `shown` counts the shingles that were remembered; `common` and `ranges` are the budgets of all
    workers, which bound what that takes.
    """
    window = tokens_kept * (HASH_BYTES + POSTINGS[sampling] * POSTING_BYTES)
    remembered = min(shown * KEY_BYTES, common) + min(shown * KEY_BYTES, ranges)
    return workers * PROCESS_BYTES + window + remembered


def plan(load: Load, sampling: str) -> Plan:
    """Return what the cluster needs for a load."""
    rate = load.tokens_per_second
    pools = max(1, math.ceil(rate / load.pool_tokens_per_second))
    workers = 1
    while rate * cpu_us(sampling, workers) / 1e6 * busiest(pools, workers) > BUSY * workers:
        workers += 1
    partitions = 2 ** math.ceil(math.log2(max(8, 2 * workers)))
    told = load.new * REMEMBERED[sampling] * rate
    shown = told * load.reach_s
    common = shown / workers * REACH_KEY_BYTES * busiest(pools, workers)
    ranges = shown * REACH_KEY_BYTES
    postings = rate * KEEP_S * POSTINGS[sampling] * POSTING_BYTES
    hashes = rate * KEEP_S * HASH_BYTES
    window = (postings + hashes) / workers * busiest(pools, workers)
    showings, marks = told * SHOWING_BYTES, MARKS * rate * MARK_BYTES
    into = rate * SEQUENCE_BYTES + showings + marks
    kept = DAY_S * (rate * SEQUENCE_BYTES + showings) + 2 * DAY_S * marks
    return Plan(
        workers=workers,
        partitions=partitions,
        pools=pools,
        cpu_us=cpu_us(sampling, workers),
        busiest=busiest(pools, workers),
        worker_bytes=PROCESS_BYTES + window + common + ranges / workers,
        common_bytes=common,
        range_bytes=ranges / partitions,
        index_bytes=postings * busiest(pools, partitions),
        into_broker=into,
        out_of_broker=rate * SEQUENCE_BYTES + showings + workers * marks,
        disk_bytes=REPLICAS * kept,
        api_cores=rate / load.request_tokens * ROW_US / 1e6,
    )


class Check(NamedTuple):
    """A figure that was measured, beside what the formulas say."""

    what: str
    measured: float
    predicted: float
    unit: str
    is_held: bool = True
    """False where the formulas leave out what was measured: the table shows how much."""

    @property
    def off(self) -> float:
        """How far the prediction is from what was measured, as a share."""
        return self.predicted / self.measured - 1


WINDOW_S: Final = 120
"""What soaks keep: a minute, and half a minute each for long answers and for grace."""


def checks() -> Iterator[Check]:
    """Yield every measured figure that a formula can be held against.

    Soaks of 2.25 minutes at 200,000 tokens/s for each worker, of 4 and 15 minutes at a million;
    those of two workers shared two cores with the broker, the sender and others. CPU with small
    batches is shown and not held: the formulas are for full ones.
    """
    budget, ranges = 1024 * MIB, 8 * 128 * MIB
    for what, workers, sampling, us, is_held in (
        ("two workers, every shingle, CPU for a token", 2, "every", 1.656, True),
        ("two workers, winnow, small batches, CPU for a token", 2, "winnow", 1.9, False),
        ("one worker at 200,000 tokens/s, small batches, CPU for a token", 1, "every", 2.4, False),
    ):
        yield Check(what, us, cpu_us(sampling, workers), "µs", is_held)
    for what, sampling, rate, millions in (
        ("one worker at 197,000 tokens/s, postings", "every", 196_950, 23.66),
        ("one worker at 197,000 tokens/s, winnow, postings", "winnow", 197_172, 5.057),
        ("one worker at 982,000 tokens/s, winnow, postings", "winnow", 981_846, 29.63),
    ):
        predicted = rate * WINDOW_S * POSTINGS[sampling] / 1e6
        yield Check(what, millions, predicted, "million")
    for what, workers, sampling, rate, seconds, mib in (
        ("one worker at 197,000 tokens/s, memory", 1, "every", 196_950, 136, 2_582),
        ("one worker at 197,000 tokens/s, winnow, memory", 1, "winnow", 197_172, 136, 1_646),
        ("one worker at 997,000 tokens/s, winnow, memory", 1, "winnow", 996_541, 905, 4_070),
        ("two workers at 253,000 tokens/s, memory", 2, "every", 253_334, 138, 3_414),
        ("two workers at 393,000 tokens/s, winnow, memory", 2, "winnow", 393_272, 136, 2_898),
    ):
        shown = 0.93 * REMEMBERED[sampling] * rate * seconds
        predicted = memory(
            workers=workers, tokens_kept=rate * WINDOW_S, sampling=sampling,
            shown=shown, common=workers * budget, ranges=ranges,
        )  # fmt: skip
        yield Check(what, mib, predicted / MIB, "MiB")


RATES: Final = (100_000, 1_000_000, 10_000_000)


def check_table() -> Iterator[str]:
    """Yield the lines of the table of checks."""
    yield "| figure | measured | by the formulas | off by |"
    yield "|---|---|---|---|"
    for one in checks():
        digits = 0 if one.measured >= 100 else 2
        yield (
            f"| {one.what} | {one.measured:,.{digits}f} {one.unit} "
            f"| {one.predicted:,.{digits}f} {one.unit} | {one.off:+.0%}"
            f"{'' if one.is_held else ', not held'} |"
        )


def plan_table(rates: Iterable[float]) -> Iterator[str]:
    """Yield the lines of the table of plans."""
    made = [(rate, name, plan(Load(rate), name)) for rate in rates for name in CPU_US]
    heads = (f"{_rate(rate)}, {name}" for rate, name, _ in made)
    yield f"| tokens/s, sampling | {' | '.join(heads)} |"
    yield "|---" * (len(made) + 1) + "|"
    for name, value in _ROWS:
        yield f"| {name} | {' | '.join(value(one) for _, _, one in made)} |"


_ROWS: Final[tuple[tuple[str, Callable[[Plan], str]], ...]] = (
    ("workers, of one core each", lambda one: f"{one.workers}"),
    ("KV pools of 10,000 tokens/s", lambda one: f"{one.pools:,}"),
    ("`kafka.partitions`", lambda one: f"{one.partitions}"),
    ("CPU for a token, µs", lambda one: f"{one.cpu_us:.2f}"),
    ("busiest worker beside the mean", lambda one: f"{one.busiest:.2f}"),
    ("memory of a worker, GiB", lambda one: f"{one.worker_bytes / GIB:.1f}"),
    ("`detection.index.memory_bytes`, GiB", lambda one: f"{one.index_bytes / GIB:,.1f}"),
    ("`detection.commonness.memory_bytes`, GiB", lambda one: f"{one.common_bytes / GIB:.1f}"),
    ("`detection.commonness.range_memory_bytes`, GiB", lambda one: f"{one.range_bytes / GIB:.2f}"),
    ("memory of all workers, GiB", lambda one: f"{one.workers * one.worker_bytes / GIB:,.0f}"),
    ("into the broker, MB/s", lambda one: f"{one.into_broker / MB:.1f}"),
    ("out of the broker, MB/s", lambda one: f"{one.out_of_broker / MB:.1f}"),
    ("disk of the brokers, three replicas, TB", lambda one: f"{one.disk_bytes / 1e12:.2f}"),
    ("api, cores for rows", lambda one: f"{one.api_cores:.2f}"),
)


def _rate(rate: float) -> str:
    return f"{rate / 1e6:g} million" if rate >= MB else f"{rate:,.0f}"


def main() -> None:
    """Print both tables, the second for the rate of the command line if one is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens-per-second", type=float)
    given = parser.parse_args().tokens_per_second
    print("\n".join(check_table()), end="\n\n")
    print("\n".join(plan_table(RATES if given is None else (given,))))


if __name__ == "__main__":
    main()
