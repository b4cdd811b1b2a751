"""The torch path gives the same bits as the definitions, on whatever device there is."""

import logging

import numpy as np
import pytest
import torch

from detector.backend import FallbackBackend, NumbaBackend, choose_backend
from detector.errors import DeviceMemoryError
from detector.sketch.batch import flatten
from detector.sketch.header import SketchHeader
from detector.sketch.minhash import signatures
from detector.sketch.winnow import winnow
from detector.torch_path import backend as torch_backend
from detector.torch_path.backend import TorchBackend, has_cuda
from detector.torch_path.winnow import flat_winnow
from tests.unit.batches import (
    HEADER,
    WINDOWS,
    assert_equal,
    assert_prepared,
    assert_same_bits,
    random_ranges,
    reference,
)

DEVICE = "cuda" if has_cuda() else "cpu"


@pytest.mark.parametrize("seed", range(8))
def test_the_same_bits_on_500_batches(seed: int) -> None:
    assert_same_bits(TorchBackend(DEVICE), np.random.default_rng(100 + seed), batches=500)


def test_winnowing_of_extreme_and_equal_keys() -> None:
    draw = np.random.default_rng(3)
    for _ in range(500):
        keys, starts, ends = random_ranges(draw)
        window = int(draw.choice(WINDOWS))
        picks = [
            begin + np.flatnonzero(winnow(keys[begin:end], window))
            for begin, end in zip(starts, ends, strict=True)
        ]
        found = flat_winnow(torch.tensor(keys), torch.tensor(starts), torch.tensor(ends), window)
        np.testing.assert_array_equal(found.numpy(), np.concatenate(picks))


def test_a_batch_larger_than_a_piece_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_backend, "CPU_TOKENS", 1000)
    monkeypatch.setattr(torch_backend, "DEVICE_TOKENS", 1000)
    monkeypatch.setattr(torch_backend, "SCRATCH_BYTES", {"cuda": 4096, "cpu": 4096})
    draw = np.random.default_rng(5)
    lengths = (1500, 0, 999, 1, 1, 300, 300, 300, 300)
    batch = flatten([draw.integers(0, 1 << 32, each, dtype=np.uint32) for each in lengths])
    backend = TorchBackend(DEVICE)
    found = backend.fingerprints(batch, window=8, min_distinct=6)
    assert_equal(found, reference(batch, window=8, min_distinct=6))
    made = backend.shingles(batch, min_distinct=6, window=8)
    assert_prepared(made, batch, min_distinct=6, window=8)
    header = SketchHeader()
    np.testing.assert_array_equal(
        backend.signatures(found.keys, found.offsets, header),
        signatures(found.keys, found.offsets, header),
    )


def test_a_batch_that_runs_out_of_memory_midway_is_redone_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    draw = np.random.default_rng(6)
    batch = flatten([draw.integers(0, 1 << 32, 500, dtype=np.uint32) for _ in range(20)])
    expected = reference(batch, window=8, min_distinct=6)
    device = TorchBackend(DEVICE)
    backend = FallbackBackend(device, NumbaBackend())
    with caplog.at_level(logging.WARNING), monkeypatch.context() as patched:
        patched.setattr(torch, "searchsorted", full)
        patched.setattr(torch, "repeat_interleave", full)
        assert_equal(backend.fingerprints(batch, window=8, min_distinct=6), expected)
        np.testing.assert_array_equal(
            backend.signatures(expected.keys, expected.offsets, HEADER),
            signatures(expected.keys, expected.offsets, HEADER),
        )
        made = backend.shingles(batch, min_distinct=6, window=8)
        assert_prepared(made, batch, min_distinct=6, window=8)
        with pytest.raises(DeviceMemoryError):
            device.fingerprints(batch, window=8, min_distinct=6)
    assert backend.redone == 3
    assert len(caplog.records) == 1
    assert_equal(backend.fingerprints(batch, window=8, min_distinct=6), expected)
    assert backend.redone == 3


def test_the_choice_says_what_it_does(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        chosen = choose_backend("auto").name, choose_backend("torch").name
    told = [record.getMessage() for record in caplog.records]
    if has_cuda():
        assert all(name.startswith("torch") for name in chosen)
        assert not any("sees no CUDA device" in line for line in told)
        return
    assert chosen == ("numba", "torch (cpu)")
    assert told == [
        "torch is installed but sees no CUDA device; using numba",
        "torch sees no CUDA device and runs on the CPU, where numba is faster",
    ]
