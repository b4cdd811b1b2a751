"""Speed and memory of the core, beside two things one would try first, in the same run.

All contestants take turns in every round, CPU time is counted, medians are compared: absolute times
move by half on a shared machine, ratios do not. All hold the same window of responses, the newest
pushing out the oldest; the detector also holds a day's commonness, and has every filter on.
"""

import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import xxhash
from datasketch import MinHash, MinHashLSH

from detector.benchmarks.sharing import sharing_rows
from detector.config.root import Settings
from detector.errors import UsageError
from detector.model import EngineId, Hashes, Kind, PoolId, RequestId, Sequence, TenantId
from detector.pipeline import Detector
from detector.reading import OnProgress
from detector.service import replay
from detector.settings import DetectionSettings

ROUNDS = 41
LIVE_POSTINGS = 4_000_000
RESPONSE_TOKENS = 1_000
WINDOW_RESPONSES = LIVE_POSTINGS // RESPONSE_TOKENS
VOCABULARY = 262_144
"""Gemma's vocabulary, the largest of the common ones."""

PHRASES = 5_000
PHRASE_SHARE = 0.1
"""A tenth of all tokens come from stock phrases of 8 to 40 tokens, by Zipf's law as the rest."""

TENANTS = 50
COMMON_TENANTS = 3
"""The day before has shown every stock phrase to this many tenants."""

DETECTOR_RESPONSES = 300
PEER_RESPONSES = 20
READ_RESPONSES = 1_500

Row = dict[str, str | float]

Contestant = Callable[[list[Hashes]], Callable[[], None]]
"""Takes responses as arrays of hashes, and returns the work on them."""


def run_bench(*, on_progress: OnProgress | None = None) -> list[Row]:
    """Return one row per thing measured; `ratio` is to the core, so a peer's is our speed-up."""
    step = on_progress or (lambda _share, _label: None)
    step(0.0, "making traffic")
    traffic = _Traffic()
    step(0.1, "learning a day")
    ours = _Ours(traffic)
    contestants: dict[str, tuple[int, Contestant]] = {
        "bleedwatch core": (DETECTOR_RESPONSES, ours.ready),
        "datasketch MinHashLSH, xxh32": (PEER_RESPONSES, _ready(_datasketch_loop())),
        "dict of 10-grams": (PEER_RESPONSES, _ready(_dict_loop())),
    }
    window = [traffic.response() for _ in range(WINDOW_RESPONSES)]
    for number, (name, (_, contestant)) in enumerate(contestants.items()):
        step(0.3 + 0.1 * number, f"filling {name}")
        contestant(window)()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(ROUNDS):
        for name, (count, contestant) in contestants.items():
            work = contestant([traffic.response() for _ in range(count)])
            began = time.process_time()
            work()
            spent = time.process_time() - began
            times[name].append(spent * 1e9 / (count * RESPONSE_TOKENS))
        step(0.6 + 0.3 * (number + 1) / ROUNDS, "measuring")
    rows = _rows(times)
    step(0.9, "sharing")
    rows += sharing_rows(traffic.response, [traffic.table[each] for each in traffic.phrases])
    step(0.95, "reading")
    rows.append(_reading(traffic))
    size = ours.bytes_per_posting()
    rows.append({"measured": "index, per live posting", "median": size, "unit": "bytes"})
    return rows


def _rows(times: dict[str, list[float]]) -> list[Row]:
    ours = statistics.median(next(iter(times.values())))
    rows: list[Row] = []
    for name, each in times.items():
        median = statistics.median(each)
        rows.append(
            {
                "measured": name,
                "median": round(median, 1),
                "unit": "ns/token",
                "least": round(min(each), 1),
                "most": round(max(each), 1),
                "ratio": round(median / ours, 2),
            }
        )
    return rows


class _Traffic:
    """Seeded responses: tokens by Zipf's law with stock phrases in between."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(20_261_129)
        self.ids = self._zipf(VOCABULARY)
        self._phrase_of = self._zipf(PHRASES)
        lengths = self._random.integers(8, 41, PHRASES)
        self.phrases = [self._random.integers(0, VOCABULARY, length) for length in lengths]
        self.table = self._random.integers(0, 1 << 32, VOCABULARY, dtype=np.uint32)

    def token_ids(self) -> "np.typing.NDArray[np.int64]":
        """Return the ids of one response."""
        ids = self.ids(RESPONSE_TOKENS)
        left = int(RESPONSE_TOKENS * PHRASE_SHARE)
        while left > 0:
            phrase = self.phrases[int(self._phrase_of(1)[0])]
            at = int(self._random.integers(0, RESPONSE_TOKENS - len(phrase)))
            ids[at : at + len(phrase)] = phrase
            left -= len(phrase)
        return ids

    def response(self) -> Hashes:
        """Return the hashes of one response."""
        return self.table[self.token_ids()]

    def _zipf(self, size: int) -> "Callable[[int], np.typing.NDArray[np.int64]]":
        shares = np.cumsum(1 / np.arange(1, size + 1))
        shares /= shares[-1]
        return lambda count: np.minimum(
            np.searchsorted(shares, self._random.random(count)), size - 1
        )


class _Ours:
    """A detector with a full window in which every new response pushes an old one out."""

    def __init__(self, traffic: _Traffic) -> None:
        settings = DetectionSettings()
        self._gap_ms = settings.window.keep_ms * RESPONSE_TOKENS // LIVE_POSTINGS
        self._detector = Detector(settings)
        self._count = 0
        day_ms = settings.commonness.horizon_ms
        for phrase in traffic.phrases:
            for _ in range(COMMON_TENANTS):  # whose turns come one after the other
                self._detector.warm(self._next(traffic.table[phrase], at_ms=-day_ms))
        for number in range(LIVE_POSTINGS * 3 // RESPONSE_TOKENS):
            self._detector.warm(self._next(traffic.response(), at_ms=number - day_ms))
        for _ in range(LIVE_POSTINGS // 2 // RESPONSE_TOKENS):
            self.ready([traffic.response()])()

    def ready(self, responses: list[Hashes]) -> Callable[[], None]:
        """Give the responses the names and times of records, which is not the core's work."""
        records = [self._next(hashes, at_ms=self._count * self._gap_ms) for hashes in responses]

        def work() -> None:
            for record in records:
                self._detector.observe(record)

        return work

    def bytes_per_posting(self) -> float:
        return round(self._detector.index_bytes / self._detector.live_postings, 1)

    def _next(self, hashes: Hashes, *, at_ms: int) -> Sequence:
        self._count += 1
        return Sequence(
            tenant=TenantId(f"tenant-{self._count % TENANTS}"),
            request_id=RequestId(f"request-{self._count}"),
            kv_pool=PoolId("pool"),
            engine=EngineId("engine"),
            model="model",
            kind=Kind.RESPONSE,
            started_at_ms=at_ms,
            ended_at_ms=at_ms,
            token_hashes=hashes,
        )


def _ready(run: Callable[[list[Hashes]], None]) -> Contestant:
    return lambda responses: lambda: run(responses)


def _datasketch_loop() -> Callable[[list[Hashes]], None]:
    """Whole-document near-duplicates: one signature each, query, insert, remove the oldest."""
    index = MinHashLSH(threshold=0.5, num_perm=128)
    names = _numbers()

    def run(responses: list[Hashes]) -> None:
        for hashes in responses:
            name = next(names)
            raw = hashes.tobytes()
            sketch = MinHash(num_perm=128, hashfunc=xxhash.xxh32_intdigest)
            sketch.update_batch([raw[at : at + 40] for at in range(0, len(raw) - 36, 4)])
            index.query(sketch)
            index.insert(name, sketch)
            if name >= WINDOW_RESPONSES:
                index.remove(name - WINDOW_RESPONSES)

    return run


def _dict_loop() -> Callable[[list[Hashes]], None]:
    """Every 10-gram in a dictionary, with who showed it last and where."""
    last: dict[tuple[int, ...], tuple[int, int]] = {}
    held: deque[list[tuple[int, ...]]] = deque()
    names = _numbers()

    def run(responses: list[Hashes]) -> None:
        for hashes in responses:
            tokens, name = hashes.tolist(), next(names)
            found, grams = [], []
            for at in range(len(tokens) - 9):
                gram = tuple(tokens[at : at + 10])
                known = last.get(gram)
                if known is not None and known[0] % TENANTS != name % TENANTS:
                    found.append((at, known))
                last[gram] = (name, at)
                grams.append(gram)
            held.append(grams)
            if len(held) > WINDOW_RESPONSES:
                for gram in held.popleft():
                    if gram in last and last[gram][0] <= name - WINDOW_RESPONSES:
                        del last[gram]

    return run


def _numbers() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


def _reading(traffic: _Traffic) -> Row:
    """Replay a JSONL file: read, hash, order, detect."""
    with tempfile.TemporaryDirectory(prefix="bleedwatch-bench-") as folder:
        path = Path(folder) / "requests.jsonl"
        with path.open("wb") as file:
            for number in range(READ_RESPONSES):
                file.write(_line(number, traffic) + b"\n")
        report = replay([str(path)], Settings(), format="jsonl")
    if not report.tokens:
        raise UsageError("the benchmark's own file was not read")
    rate = report.tokens / report.cpu_seconds
    return {"measured": "replay of a JSONL file", "median": round(rate), "unit": "tokens/s"}


def _line(number: int, traffic: _Traffic) -> bytes:
    return msgspec.json.encode(
        {
            "request_id": f"request-{number}",
            "ts": number / 10,
            "ts_end": number / 10 + 20,
            "node": f"engine-{number % 4}",
            "tenant": f"tenant-{number % TENANTS}",
            "model": "model",
            "prompt_ids": traffic.token_ids().tolist(),
            "response_ids": traffic.token_ids().tolist(),
        }
    )
