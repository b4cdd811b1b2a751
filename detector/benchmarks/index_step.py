"""One step of a full window index: look a batch up, insert it, let the oldest expire.

Every engine holds the same number of live postings and is fed the same batches. A posting is
(key, owner, sequence); what is asked for is the postings of the key by other owners.
"""

import time
from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from detector.benchmarks.harness import Work
from detector.benchmarks.peers import installed
from detector.index.postings import PostingIndex
from detector.index.sequences import SequenceStore
from detector.model import EngineId, Kind, PoolId, RequestId, Sequence, TenantId
from detector.sketch.shingle import Keys

SEQUENCE_KEYS = 1_000
"""Postings of one sequence."""

BATCH_SEQUENCES = 16
"""Sequences of one step: 16,000 postings."""

OWNERS = 50

_SHARED = 0.01
"""Share of keys drawn from a small common set, so that lookups find something."""


class Traffic:
    """An endless stream of sequences' keys: mostly new ones, a few that everybody shows."""

    def __init__(self, seed: int) -> None:
        self._draw = np.random.default_rng(seed)
        self._common = self._draw.integers(-(1 << 63), (1 << 63) - 1, 5_000)
        self.count = 0

    def sequence(self) -> tuple[int, int, Keys]:
        """Return (number, owner, keys) of the next sequence."""
        keys = self._draw.integers(-(1 << 63), (1 << 63) - 1, SEQUENCE_KEYS)
        shared = self._draw.random(SEQUENCE_KEYS) < _SHARED
        keys[shared] = self._draw.choice(self._common, int(shared.sum()))
        self.count += 1
        return self.count - 1, self.count % OWNERS, keys


class OurIndex:
    """The posting index with its store; one millisecond of event time per sequence."""

    def __init__(self, live: int) -> None:
        self._keep = live // SEQUENCE_KEYS
        self._store = SequenceStore()
        self._index = PostingIndex(self._store, memory_bytes=1 << 32)
        self._positions = np.arange(SEQUENCE_KEYS, dtype=np.int32)
        self._tokens = np.empty(0, np.uint32)
        self.longest_ms = 0.0
        """CPU time of the longest step since a tenth of the window is full; compiling is over."""

    def fill(self, number: int, owner: int, keys: Keys) -> None:
        """Take a step, and note how long it keeps the sequence waiting while the table grows."""
        began = time.process_time()
        self.step(number, owner, keys)
        if number >= self._keep // 10:
            self.longest_ms = max(self.longest_ms, 1e3 * (time.process_time() - began))

    def step(self, number: int, owner: int, keys: Keys) -> None:
        """Look one sequence up, insert it, expire what is too old."""
        sequence = Sequence(
            tenant=TenantId(f"tenant-{owner}"), request_id=RequestId(str(number)),
            kv_pool=PoolId("pool"), engine=EngineId("engine"), model="", kind=Kind.RESPONSE,
            started_at_ms=number, ended_at_ms=number + 1, token_hashes=self._tokens,
        )  # fmt: skip
        self._store.release(
            self._index.make_room(len(keys), self._store.expired(number - self._keep))
        )
        at = self._store.add(sequence, owner)
        pool_keys = keys ^ self._index.salt("pool")
        self._index.observe(pool_keys, self._positions, at, window_ms=self._keep)

    def bytes_per_posting(self) -> float:
        """Return bytes of the table per live posting."""
        return self._index.nbytes / (self._keep * SEQUENCE_KEYS)


class DictIndex:
    """A dict from key to one posting per owner, and a queue of batches to expire.

    The value is a number while one owner has the key, which is the rule, else a tuple.
    """

    def __init__(self, live: int) -> None:
        self._keep = live // SEQUENCE_KEYS
        self._postings: dict[int, int | tuple[int, ...]] = {}
        self._queue: deque[tuple[int, list[int]]] = deque()
        self.hits: list[tuple[int, int]] = []

    def step(self, number: int, owner: int, keys: Keys) -> None:
        """Look one sequence up, insert it, expire what is too old."""
        table, hits = self._postings, self.hits
        hits.clear()
        posting = number * OWNERS + owner
        listed = keys.tolist()
        for key in listed:
            known = table.get(key)
            if known is None:
                table[key] = posting
                continue
            each = known if isinstance(known, tuple) else (known,)
            others = tuple([one for one in each if one % OWNERS != owner])
            hits += [(one, key) for one in others]
            table[key] = (*others, posting) if others else posting
        self._queue.append((posting, listed))
        while len(self._queue) > self._keep:
            self._drop(*self._queue.popleft())

    def _drop(self, old: int, keys: list[int]) -> None:
        table = self._postings
        for key in keys:
            known = table.get(key)
            if known == old:
                del table[key]
            elif isinstance(known, tuple):
                rest = tuple([one for one in known if one != old])
                if rest:
                    table[key] = rest
                else:
                    del table[key]

    def fill(self, keys: Keys) -> None:
        """Take sequences in at once: the steps are slow, the state is the same."""
        for number, part in enumerate(keys.reshape(-1, SEQUENCE_KEYS)):
            self._queue.append((number * OWNERS, part.tolist()))
            self._postings.update(dict.fromkeys(self._queue[-1][1], number * OWNERS))


Step = Callable[[int, int, Keys], None]


def stepper(step: Step, traffic: Traffic, *, rounds: int) -> Work:
    """Return work that feeds the next 16 sequences, made beforehand, to an engine."""
    ready = iter([traffic.sequence() for _ in range(rounds * BATCH_SEQUENCES)])

    def work() -> int:
        for _ in range(BATCH_SEQUENCES):
            step(*next(ready))
        return BATCH_SEQUENCES * SEQUENCE_KEYS

    return work


def joins(resident: NDArray[np.int64]) -> dict[str, Work]:
    """Return the table engines that are installed, joining 16,000 keys with resident ones.

    They only look up: what insertion and expiry would cost them is left out.
    """
    draw = np.random.default_rng(1)
    batch = draw.integers(-(1 << 63), (1 << 63) - 1, BATCH_SEQUENCES * SEQUENCE_KEYS)
    batch[: len(batch) // 100] = draw.choice(resident, len(batch) // 100)
    found: dict[str, Work] = {}
    if installed("polars"):
        found["polars join (lookup only)"] = _polars(resident, batch)
    if installed("duckdb"):
        found["duckdb join (lookup only)"] = _duckdb(resident, batch)
    return found


def _polars(resident: NDArray[np.int64], batch: NDArray[np.int64]) -> Work:
    import polars  # noqa: PLC0415 - optional

    table = polars.DataFrame({"key": resident, "posting": np.arange(len(resident))})

    def work() -> int:
        polars.DataFrame({"key": batch}).join(table, on="key")
        return len(batch)

    return work


def _duckdb(resident: NDArray[np.int64], batch: NDArray[np.int64]) -> Work:
    import duckdb  # noqa: PLC0415 - optional

    base = duckdb.connect()
    base.execute("SET threads = 1")
    base.register("arriving", {"key": resident, "posting": np.arange(len(resident))})
    base.execute("CREATE TABLE resident AS SELECT * FROM arriving")

    def work() -> int:
        base.register("batch", {"key": batch})
        base.execute("SELECT batch.key, posting FROM batch JOIN resident USING (key)").fetchnumpy()
        return len(batch)

    return work
