"""Whole-document peers end to end: sketch a response, look similar ones up, insert it.

Each is optional. datasketch also removes the oldest, as a window must; rensa and FastSketchLSH do
not, which flatters them. These two get our compiled shingles, because they hash no tokens.
"""

from collections import deque
from collections.abc import Callable, Iterable

import numpy as np
import xxhash

from detector.benchmarks.peers import SHINGLE_BYTES, installed
from detector.kernels.shingle import shingles
from detector.model import Hashes

THRESHOLD = 0.5
BANDS, ROWS = 25, 5
"""The shape that datasketch chooses for the threshold; FastSketchLSH splits 128 values evenly."""

EVEN_BANDS = 32

DATASKETCH_XXH32 = "datasketch MinHashLSH, xxh32"
DATASKETCH_DEFAULT = "datasketch MinHashLSH, default sha1"
RENSA = "rensa RMinHash on our shingles, its LSH"
FAST_SKETCH = "FastSketchLSH on our shingles, its LSH"

Take = Callable[[int, Hashes], Iterable[int]]


def contestants(*, window: int) -> dict[str, Take]:
    """Return what is installed; datasketch holds `window` responses."""
    found: dict[str, Take] = {}
    if installed("datasketch"):
        found[DATASKETCH_XXH32] = _datasketch(xxhash.xxh32_intdigest, window=window)
        found[DATASKETCH_DEFAULT] = _datasketch(None, window=window)
    if installed("rensa"):
        found[RENSA] = _rensa()
    if installed("FastSketchLSH"):
        found[FAST_SKETCH] = _fast_sketch()
    return found


def _datasketch(hashfunc: Callable[[bytes], int] | None, *, window: int) -> Take:
    from datasketch import MinHash, MinHashLSH  # noqa: PLC0415 - optional, and slow to load

    options = {} if hashfunc is None else {"hashfunc": hashfunc}
    index = MinHashLSH(threshold=THRESHOLD, num_perm=128)
    held: deque[int] = deque()

    def take(number: int, tokens: Hashes) -> Iterable[int]:
        raw = tokens.tobytes()
        sketch = MinHash(num_perm=128, **options)
        last = len(raw) - SHINGLE_BYTES + 1
        sketch.update_batch([raw[at : at + SHINGLE_BYTES] for at in range(0, last, 4)])
        found: list[int] = index.query(sketch)
        index.insert(number, sketch)
        held.append(number)
        if len(held) > window:
            index.remove(held.popleft())
        return found

    return take


def _rensa() -> Take:
    from rensa import RMinHash, RMinHashLSH  # noqa: PLC0415 - optional

    index = RMinHashLSH(threshold=THRESHOLD, num_perm=128, num_bands=EVEN_BANDS)

    def take(number: int, tokens: Hashes) -> Iterable[int]:
        keys = shingles(tokens, 1)[0].view(np.uint64)
        rows = np.array([0, len(keys)], np.uint64)
        sketch = RMinHash.digest_matrix_from_flat_token_hashes(keys, rows, num_perm=128, seed=42)
        flags = index.insert_matrix_and_query_duplicate_flags(sketch, number)
        return range(number) if flags[0] else ()

    return take


def _fast_sketch() -> Take:
    from FastSketchLSH import LSH, FastSimilaritySketch  # noqa: PLC0415 - optional

    sketcher = FastSimilaritySketch(size=128, seed=42)
    index = LSH(num_perm=128, num_bands=EVEN_BANDS, num_threads=1)

    def take(number: int, tokens: Hashes) -> Iterable[int]:
        del number
        keys = shingles(tokens, 1)[0].view(np.uint64)
        rows = np.array([0, len(keys)], np.uint64)
        sketch = sketcher.batch_csr(keys, rows, prehashed=True, num_threads=1)
        found: list[int] = index.query(sketch[0])
        index.insert(sketch)
        return found

    return take
