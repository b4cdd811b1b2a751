"""End to end: hashed responses in, findings or candidates out, with runs planted to be found.

Every contestant reads one stream from its start: it fills its window, then takes turns with the
others. Ours has all filters on, a day's memory, and expires; the peers look up and insert whole
sketches, and those without a cheap way to forget do not. What was planted is counted as well,
because the peers' index answers another question.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from detector.benchmarks import end_to_end_peers as peers
from detector.benchmarks.harness import Timing, Work, interleave, ratio
from detector.benchmarks.workload import VOCABULARY, phrases, token_ids
from detector.errors import UsageError
from detector.model import EngineId, Hashes, Kind, PoolId, RequestId, Sequence, TenantId
from detector.pipeline import Detector
from detector.settings import DetectionSettings, IndexSettings

TOKENS: Final = 1_000
"""Of one response."""

TENANTS: Final = 50
WINNOW: Final = 8
PLANTED: Final = 120
"""Runs planted in responses that come after the timed ones."""

BACK: Final = 20
"""A planted run comes from the response of another tenant that many before."""

PLANTED_LENGTHS: Final = (10, 12, 17, 24, 32, 64)
GUARANTEED: Final = WINNOW + 9
"""Runs from this length on are found by a winnowed index, whatever is around them."""

COMMON_TENANTS: Final = 3
OURS: Final = "bleedwatch, winnow 8"
EVERY: Final = "bleedwatch, every shingle"
ROUNDS: Final = 41
"""Enough that the few in which a table grows do not make the median."""

SETTLED: Final = 1.5
"""Windows that ours read before they are measured: in the first one the index still grows."""

OUR_RESPONSES: Final = 100
PEER_RESPONSES: Final = 10

Found = Callable[[int, Hashes], Iterable[int]]
"""Takes a response by number; returns the numbers of the responses it is said to resemble."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Responses that each contestant holds when it is measured."""

    winnowed: int
    every: int
    peers: int
    rounds: int
    seconds: float


SHORT: Final = Scale(winnowed=4_000, every=4_000, peers=300, rounds=ROUNDS, seconds=4.0)
"""For the bench of the kernels: a small window flatters the peers."""

LONG: Final = Scale(winnowed=18_500, every=4_100, peers=4_100, rounds=ROUNDS, seconds=60.0)
"""More than four million live postings for both of ours."""


class Stream:
    """Responses by number: Zipf text, a tenth of it stock phrases; the last ones hold planted runs.

    Few responses of real traffic bleed, so none of those that are timed does.
    """

    def __init__(self, responses: int, *, seed: int) -> None:
        draw = np.random.default_rng(seed)
        table = draw.integers(0, 1 << 32, VOCABULARY, dtype=np.uint32)
        self.phrases: list[Hashes] = [table[phrase] for phrase in phrases()]
        total = responses + 2 * PLANTED
        ids = token_ids(total * TOKENS, seed=seed)
        self._hashes: Hashes = table[ids].reshape(total, TOKENS)
        self.planted: dict[int, tuple[int, int]] = {}
        self.proof = range(responses, total)
        for number in range(PLANTED):
            source = responses + number + number // BACK * BACK
            self._plant(source, source + BACK, draw)

    def __getitem__(self, number: int) -> Hashes:
        row: Hashes = self._hashes[number]
        return row

    def _plant(self, source: int, sink: int, draw: np.random.Generator) -> None:
        """Write one new run into both responses, which are of different tenants."""
        length = int(draw.choice(PLANTED_LENGTHS))
        run = draw.integers(0, 1 << 32, length, dtype=np.uint32)
        for number in (source, sink):
            at = int(draw.integers(0, TOKENS - length))
            self._hashes[number, at : at + length] = run
        self.planted[sink] = (source, length)


@dataclass(slots=True)
class Contestant:
    """Reads the stream from the start; `recall` has it read the end."""

    stream: Stream
    take: Found
    per_round: int
    following: int = 0

    def fill(self, responses: int) -> None:
        """Take responses in without being timed."""
        for number in range(responses):
            self.take(number, self.stream[number])
        self.following = responses

    def work(self) -> int:
        """Take the next responses in; return their tokens."""
        for number in range(self.following, self.following + self.per_round):
            self.take(number, self.stream[number])
        self.following += self.per_round
        return self.per_round * TOKENS

    def recall(self) -> dict[int, float]:
        """Return the share of planted runs found, by length."""
        found: dict[int, list[bool]] = {length: [] for length in PLANTED_LENGTHS}
        for number in self.stream.proof:
            named = self.take(number, self.stream[number])
            if number in self.stream.planted:
                source, length = self.stream.planted[number]
                found[length].append(source in named)
        return {length: float(np.mean(each)) for length, each in found.items() if each}


def ours(stream: Stream, *, sampling: str, responses: int) -> Found:
    """Return a detector that holds that many responses; the day before has shown every phrase."""
    index = IndexSettings.model_validate({"sampling": sampling, "winnow_window": WINNOW})
    settings = DetectionSettings(index=index)
    detector = Detector(settings)
    day_ms = settings.commonness.horizon_ms
    gap_ms = settings.window.keep_ms / responses
    for number, tokens in enumerate(stream.phrases * COMMON_TENANTS):
        detector.warm(_response(number // len(stream.phrases), tokens, at_ms=-day_ms))

    def take(number: int, tokens: Hashes) -> list[int]:
        at_ms = round(number * gap_ms)
        findings = detector.observe(_response(number, tokens, at_ms=at_ms))
        return [
            int(source.request_id)
            for one in findings
            for source in (one.source, *one.other_sources)
        ]

    return take


def _response(number: int, tokens: Hashes, *, at_ms: int) -> Sequence:
    return Sequence(
        tenant=TenantId(f"tenant-{number % TENANTS}"), request_id=RequestId(str(number)),
        kv_pool=PoolId("pool"), engine=EngineId("engine"), model="model", kind=Kind.RESPONSE,
        started_at_ms=at_ms, ended_at_ms=at_ms, token_hashes=tokens,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """Timings by contestant, and the share of planted runs that each found, by length."""

    timings: dict[str, Timing]
    recall: dict[str, dict[int, float]]

    def ratio(self, slow: str, fast: str = OURS) -> float | None:
        """Return how many times faster `fast` is, None where a peer is not installed."""
        if slow not in self.timings:
            return None
        return ratio(self.timings, slow, fast)

    def ratios(self) -> dict[str, float]:
        """Return the ratios that are held to a target."""
        wanted = {
            "end_to_end_vs_datasketch_xxh32": self.ratio(peers.DATASKETCH_XXH32),
            "end_to_end_every_vs_datasketch_xxh32": self.ratio(peers.DATASKETCH_XXH32, EVERY),
            "end_to_end_vs_datasketch_default": self.ratio(peers.DATASKETCH_DEFAULT),
            "end_to_end_vs_rensa": self.ratio(peers.RENSA),
            "end_to_end_vs_fastsketch": self.ratio(peers.FAST_SKETCH),
        }
        return {name: value for name, value in wanted.items() if value is not None}


def run_end_to_end(scale: Scale) -> Measured:
    """Fill every contestant's window, then let them take turns."""
    rounds = scale.rounds + 1
    held = {
        OURS: round(SETTLED * scale.winnowed),
        EVERY: round(SETTLED * scale.every),
    }
    most = max(held.values()) + rounds * OUR_RESPONSES
    stream = Stream(most, seed=11)
    contestants = {
        OURS: Contestant(
            stream, ours(stream, sampling="winnow", responses=scale.winnowed), OUR_RESPONSES
        ),
        EVERY: Contestant(
            stream, ours(stream, sampling="every", responses=scale.every), OUR_RESPONSES
        ),
        **{
            name: Contestant(stream, take, PEER_RESPONSES)
            for name, take in peers.contestants(window=scale.peers).items()
        },
    }
    for name, each in contestants.items():
        each.fill(held.get(name, scale.peers))
    works: dict[str, Work] = {name: each.work for name, each in contestants.items()}
    timings = interleave(works, rounds=scale.rounds, seconds=scale.seconds)
    recall = {name: each.recall() for name, each in contestants.items()}
    if not all(share == 1 for n, share in recall[OURS].items() if n >= GUARANTEED):
        raise UsageError(f"planted runs of {GUARANTEED} tokens and more were missed: {recall}")
    return Measured(timings, recall)
