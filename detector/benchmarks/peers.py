"""Libraries to compare with: each is optional, and a missing one is reported as not installed."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import numpy as np
import xxhash
from numpy.typing import NDArray

from detector.benchmarks.harness import Work
from detector.sketch.batch import TokenBatch
from detector.sketch.minhash import Offsets
from detector.sketch.shingle import SHINGLE_TOKENS, Keys

SHINGLE_BYTES = 4 * SHINGLE_TOKENS


def installed(module: str) -> bool:
    """Return whether a peer can be imported."""
    return find_spec(module) is not None


def shingle_bytes(batch: TokenBatch) -> list[list[bytes]]:
    """Return the 10-grams of every sequence as bytes, as these libraries take them."""
    raw = batch.tokens.astype("<u4").tobytes()
    spans = zip(batch.offsets[:-1].tolist(), batch.offsets[1:].tolist(), strict=True)
    return [
        [raw[4 * at : 4 * at + SHINGLE_BYTES] for at in range(begin, end - SHINGLE_TOKENS + 1)]
        for begin, end in spans
    ]


def python_loop(batch: TokenBatch) -> int:
    """Hash every 10-gram with xxh3 in a plain Python loop; the least that any loop does."""
    digest, raw = xxhash.xxh3_64_intdigest, batch.tokens.tobytes()
    for begin, end in zip(batch.offsets[:-1].tolist(), batch.offsets[1:].tolist(), strict=True):
        last = 4 * (end - SHINGLE_TOKENS + 1)
        _ = [digest(raw[at : at + SHINGLE_BYTES]) for at in range(4 * begin, last, 4)]
    return len(batch.tokens)


def sketchers(few: TokenBatch, keys: Keys, offsets: Offsets) -> dict[str, Work]:
    """Return the peers that sketch sets: `few` sequences for the slow ones, prehashed keys else."""
    found: dict[str, Work] = {}
    if installed("datasketch"):
        found |= _datasketch(few)
    if installed("rensa"):
        found |= _rensa(keys.view(np.uint64), offsets)
    if installed("FastSketchLSH"):
        found["FastSketchLSH batch_csr, prehashed"] = _fast_sketch(keys.view(np.uint64), offsets)
    return found


def _datasketch(few: TokenBatch) -> dict[str, Work]:
    from datasketch import MinHash  # noqa: PLC0415 - optional, and slow to load

    shingles = shingle_bytes(few)

    def bulk(hashfunc: Callable[[bytes], int] | None) -> int:
        options = {} if hashfunc is None else {"hashfunc": hashfunc}
        MinHash.bulk(shingles, num_perm=128, seed=1, **options)
        return len(few.tokens)

    def update_batch() -> int:
        for each in shingles:
            MinHash(num_perm=128, seed=1, hashfunc=xxhash.xxh32_intdigest).update_batch(each)
        return len(few.tokens)

    return {
        "datasketch bulk, xxh32": partial(bulk, xxhash.xxh32_intdigest),
        "datasketch update_batch, xxh32": update_batch,
        "datasketch bulk, default sha1": partial(bulk, None),
    }


def _rensa(hashes: NDArray[np.uint64], offsets: Offsets) -> dict[str, Work]:
    from rensa import CMinHash, RMinHash  # noqa: PLC0415 - optional

    rows = offsets.astype(np.uint64)
    some = [hashes[offsets[i] : offsets[i + 1]].tolist() for i in range(min(len(offsets) - 1, 20))]

    def flat() -> int:
        RMinHash.digest_matrix_from_flat_token_hashes(hashes, rows, num_perm=128, seed=42)
        return len(hashes)

    def c_minhash() -> int:
        CMinHash.digests64_from_token_hash_sets(some, num_perm=128, seed=42)
        return sum(map(len, some))

    return {"rensa RMinHash, prehashed": flat, "rensa CMinHash, prehashed": c_minhash}


def _fast_sketch(hashes: NDArray[np.uint64], offsets: Offsets) -> Work:
    from FastSketchLSH import FastSimilaritySketch  # noqa: PLC0415 - optional

    sketch, rows = FastSimilaritySketch(size=128, seed=42), offsets.astype(np.uint64)

    def flat() -> int:
        sketch.batch_csr(hashes, rows, prehashed=True, num_threads=1)
        return len(hashes)

    return flat
