"""All backends give the same bits as the definitions, and none loses a batch."""

import logging
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from detector.backend import Backend, FallbackBackend, NumbaBackend, NumpyBackend, choose_backend
from detector.errors import DeviceMemoryError
from detector.kernels import winnow as winnow_kernel
from detector.kernels.flat import TILE
from detector.sketch.batch import (
    Fingerprints,
    Offsets,
    Shingles,
    TokenBatch,
    chunks,
    flatten,
    joined,
)
from detector.sketch.flat import CHUNK_TOKENS, flat_winnow
from detector.sketch.header import SketchHeader
from detector.sketch.minhash import Signatures
from detector.sketch.shingle import SHINGLE_TOKENS, Keys
from detector.sketch.winnow import winnow
from tests.unit.batches import (
    EXTREMES,
    HEADER,
    WINDOWS,
    assert_equal,
    assert_prepared,
    assert_same_bits,
    random_batch,
    random_ranges,
    reference,
)

FIXED = settings(deadline=None, derandomize=True)


Picks = Callable[[Keys, int], NDArray[np.bool_]]


@pytest.mark.parametrize("backend", [NumpyBackend(), NumbaBackend()], ids=lambda each: each.name)
@pytest.mark.parametrize("seed", range(6))
def test_the_same_bits_on_500_batches(backend: Backend, seed: int) -> None:
    assert_same_bits(backend, np.random.default_rng(seed), batches=500)


def test_flat_winnowing_of_extreme_and_equal_keys() -> None:
    draw = np.random.default_rng(3)
    for _ in range(1000):
        keys, starts, ends = random_ranges(draw)
        window = int(draw.choice(WINDOWS))
        picks = [
            begin + np.flatnonzero(winnow(keys[begin:end], window))
            for begin, end in zip(starts, ends, strict=True)
        ]
        found = flat_winnow(keys, starts, ends, window)
        np.testing.assert_array_equal(found, np.concatenate(picks))


@pytest.mark.parametrize("picks", [winnow, winnow_kernel.winnow], ids=["numpy", "numba"])
@FIXED
@given(
    keys=st.lists(st.one_of(st.sampled_from(EXTREMES.tolist()), st.integers(-3, 3)), max_size=80),
    window=st.integers(1, 12),
)
def test_every_window_has_its_rightmost_minimum_picked(
    picks: Picks, keys: list[int], window: int
) -> None:
    expected = set()
    for begin in range(max(len(keys) - window + 1, min(len(keys), 1))):
        part = keys[begin : begin + window]
        expected.add(begin + max(i for i, key in enumerate(part) if key == min(part)))
    found = np.flatnonzero(picks(np.array(keys, np.int64), window))
    assert set(found.tolist()) == expected


@FIXED
@given(
    shared=st.lists(st.integers(0, 3), min_size=17, max_size=40),
    around=st.lists(st.lists(st.integers(0, 3), max_size=30), min_size=4, max_size=4),
)
def test_a_shared_run_of_window_plus_9_tokens_shares_a_pick(
    shared: list[int], around: list[list[int]]
) -> None:
    window = len(shared) - SHINGLE_TOKENS + 1
    first, second = (np.array(around[i] + shared + around[i + 1], np.uint32) for i in (0, 2))
    found = NumbaBackend().fingerprints(flatten([first, second]), window=window, min_distinct=1)
    ours = set(found.keys[: found.offsets[1]].tolist())
    assert ours & set(found.keys[found.offsets[1] :].tolist())


@pytest.mark.parametrize("window", [1, 2, 8, 64])
@pytest.mark.parametrize("distinct", [3, 1 << 32])
def test_sequences_longer_than_a_tile(window: int, distinct: int) -> None:
    draw = np.random.default_rng(window)
    around = TILE + window + SHINGLE_TOKENS
    lengths = [*range(around - 4, around + 3), 2 * TILE + window + 8, 2 * TILE + window + 9, 20]
    sequences = [draw.integers(0, distinct, each).astype(np.uint32) for each in lengths]
    sequences.append(np.zeros(3 * TILE, np.uint32))
    batch = flatten(sequences)
    found = NumbaBackend().fingerprints(batch, window=window, min_distinct=3)
    assert_equal(found, reference(batch, window=window, min_distinct=3))


def test_pieces_of_a_batch_make_the_whole() -> None:
    lengths = [CHUNK_TOKENS + 5, 3, 0, CHUNK_TOKENS - 1, 1, 200]
    draw = np.random.default_rng(0)
    sequences = [draw.integers(0, 1 << 32, length, dtype=np.uint32) for length in lengths]
    batch = flatten(sequences)
    pieces = [np.diff(starts).tolist() for starts in chunks(batch.offsets, CHUNK_TOKENS)]
    assert pieces == [[CHUNK_TOKENS + 5], [3, 0], [CHUNK_TOKENS - 1, 1], [200]]
    found = NumpyBackend().fingerprints(batch, window=8, min_distinct=6)
    assert_equal(found, reference(batch, window=8, min_distinct=6))
    made = NumpyBackend().shingles(batch, min_distinct=6, window=8)
    assert_prepared(made, batch, min_distinct=6, window=8)
    assert len(joined([]).keys) == 0


class NoMemoryAtTimes:
    """A device that has no memory for every second batch."""

    name = "small device"

    def __init__(self) -> None:
        self._cpu = NumpyBackend()
        self.asked = 0

    def fingerprints(self, batch: TokenBatch, *, window: int, min_distinct: int) -> Fingerprints:
        self._ask()
        return self._cpu.fingerprints(batch, window=window, min_distinct=min_distinct)

    def shingles(self, batch: TokenBatch, *, min_distinct: int, window: int | None) -> Shingles:
        self._ask()
        return self._cpu.shingles(batch, min_distinct=min_distinct, window=window)

    def signatures(self, keys: Keys, offsets: Offsets, header: SketchHeader) -> Signatures:
        self._ask()
        return self._cpu.signatures(keys, offsets, header)

    def _ask(self) -> None:
        self.asked += 1
        if self.asked % 2:
            raise DeviceMemoryError("the accelerator has no memory for a batch")


def test_a_batch_that_does_not_fit_is_redone_on_the_cpu(caplog: pytest.LogCaptureFixture) -> None:
    draw = np.random.default_rng(4)
    backend = FallbackBackend(NoMemoryAtTimes(), NumbaBackend())
    with caplog.at_level(logging.WARNING):
        for _ in range(10):
            batch = random_batch(draw)
            found = backend.fingerprints(batch, window=8, min_distinct=6)
            assert_equal(found, reference(batch, window=8, min_distinct=6))
    backend.signatures(np.zeros(1, np.int64), np.array([0, 1]), HEADER)
    backend.fingerprints(batch, window=8, min_distinct=6)
    made = backend.shingles(batch, min_distinct=6, window=8)
    assert_prepared(made, batch, min_distinct=6, window=8)
    assert backend.redone == 7
    assert [record.getMessage() for record in caplog.records] == [
        "small device: the accelerator has no memory for a batch; redoing it with numba"
    ]


@pytest.mark.parametrize("name", ["numpy", "numba"])
def test_a_backend_is_chosen_by_name(name: str) -> None:
    assert choose_backend(name).name == name  # type: ignore[arg-type]
