"""What sharing costs a worker: tags, telling first showings, owning a range, merging."""

import statistics
import time
from collections.abc import Callable
from collections.abc import Sequence as Items

from detector.index.memory import Memory
from detector.index.shared_memory import SharedMemory
from detector.index.shingle_range import ShingleRange
from detector.index.showings import NO_SHOWINGS, Showings, by_range, joined
from detector.model import EngineId, Hashes, Kind, PoolId, RequestId, Sequence, TenantId
from detector.pipeline import Detector
from detector.settings import DetectionSettings
from detector.sketch.tag_keys import TagKeys
from ingest.commonness_records import SHARED, SHOWN, decode, encode_showings, pieces

Row = dict[str, str | float]

ROUNDS = 9
RESPONSES = 200
RANGES = 8
TENANTS = 50
COMMON_TENANTS = 3
KEY_ID = "00000000"


def sharing_rows(response: Callable[[], Hashes], stock: Items[Hashes]) -> list[Row]:
    """Return ns per token of a worker's own traffic, with the ratio to its core without sharing.

    `stock` are the phrases of the responses, which are common from the start. Each tenant has a
    pool of its own: nothing is compared, and the core costs least. All steps take turns. The worker
    owns as much as it shows and hears what it owns: of N equal workers each hears N times that.
    """
    settings = DetectionSettings()
    alone = Detector(settings, memory=Memory(settings.commonness))
    worker = _Worker(settings)
    for number, phrase in enumerate([*stock] * COMMON_TENANTS):
        for detector in (alone, worker.detector):
            detector.warm(_sequence(phrase, number=-1, tenant=number // len(stock)))
    worker.tell([])
    spent: dict[str, list[float]] = {}
    for number in range(ROUNDS):
        made = [_sequence(response(), number=number * RESPONSES + at) for at in range(RESPONSES)]
        steps: dict[str, Callable[[list[Sequence]], None]] = {
            "core, sharing off": lambda some: _detect(alone, some),
            "core, sharing on": lambda some: _detect(worker.detector, some),
            "telling first showings": worker.tell,
            "owning a range": worker.own,
            "merging what is shared": worker.merge,
        }
        tokens = sum(len(one.token_hashes) for one in made)
        for name, step in steps.items():
            began = time.process_time()
            step(made)
            spent.setdefault(name, []).append((time.process_time() - began) * 1e9 / tokens)
    core = statistics.median(spent["core, sharing off"])
    return [_row(name, each, core) for name, each in spent.items()]


class _Worker:
    """One worker and the owner of all that it shows; every step leaves what the next one takes."""

    def __init__(self, settings: DetectionSettings) -> None:
        commonness = settings.commonness
        self._memory = SharedMemory(commonness, TagKeys(bytes(32)))
        self.detector = Detector(settings, memory=self._memory)
        self._owner = ShingleRange(
            horizon_ms=commonness.horizon_ms,
            refresh_ms=commonness.horizon_ms,
            memory_bytes=commonness.range_memory_bytes * RANGES,
            tainted=self._memory.tainted,
        )
        self._told: list[bytes] = []
        self._shared = NO_SHOWINGS

    def tell(self, sequences: list[Sequence]) -> None:  # noqa: ARG002 - what they showed is kept
        self._told = _records(SHOWN, self._memory.take_showings())

    def own(self, sequences: list[Sequence]) -> None:
        now_ms = sequences[-1].started_at_ms
        told = [decode(value, key_id=KEY_ID).showings for value in self._told]
        self._shared = joined([self._owner.learn(each, now_ms=now_ms) for each in told])

    def merge(self, sequences: list[Sequence]) -> None:
        for value in _records(SHARED, self._shared):
            told = decode(value, key_id=KEY_ID)
            self._memory.merge(told.showings, now_ms=sequences[-1].started_at_ms)


def _detect(detector: Detector, sequences: list[Sequence]) -> None:
    for one in sequences:
        detector.observe(one)


def _records(kind: bytes, shown: Showings) -> list[bytes]:
    return [
        encode_showings(kind, piece, key_id=KEY_ID, now_ms=0)
        for _, mine in by_range(shown, RANGES)
        for piece in pieces(mine)
    ]


def _row(name: str, each: list[float], core: float) -> Row:
    median = statistics.median(each)
    return {
        "measured": name,
        "median": round(median, 1),
        "unit": "ns/token",
        "least": round(min(each), 1),
        "most": round(max(each), 1),
        "ratio": round(median / core, 2),
    }


def _sequence(hashes: Hashes, *, number: int, tenant: int | None = None) -> Sequence:
    name = f"tenant-{number % TENANTS if tenant is None else tenant}"
    return Sequence(
        tenant=TenantId(name),
        request_id=RequestId(f"request-{number}"),
        kv_pool=PoolId(name),
        engine=EngineId("engine"),
        model="model",
        kind=Kind.RESPONSE,
        started_at_ms=number,
        ended_at_ms=number,
        token_hashes=hashes,
    )
