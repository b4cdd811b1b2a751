"""The torch backend: batches go to a device, fingerprints and sketches come back."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

from detector.errors import DeviceMemoryError
from detector.sketch.batch import Fingerprints, Offsets, Shingles, TokenBatch, chunks, joined
from detector.sketch.header import SketchHeader
from detector.sketch.minhash import Signatures
from detector.sketch.shingle import SHINGLE_TOKENS, Keys
from detector.torch_path.fingerprints import DeviceFingerprints, fingerprints, shingles
from detector.torch_path.minhash import signatures

DEVICE_TOKENS = 1 << 22
"""Tokens on a CUDA device at a time, enough to hide the start of 114 operations: about 100 bytes
of intermediate values are alive per token, and 900 are read and written."""

CPU_TOKENS = 1 << 16
"""The same on a CPU, where what fits the cache is faster."""

SCRATCH_BYTES = {"cuda": 1 << 29, "cpu": 1 << 21}
"""Bytes of permuted hashes at a time when sketching."""


def has_cuda() -> bool:
    """Return whether torch sees a CUDA device and its driver."""
    return bool(torch.cuda.is_available())


class TorchBackend:
    """Fingerprints and sketches on one torch device; bit-identical to the CPU backends.

    Raises DeviceMemoryError when a batch does not fit; the device is usable afterwards.
    """

    def __init__(self, device: str) -> None:
        self._device = torch.device(device)
        self._tokens = DEVICE_TOKENS if self._device.type == "cuda" else CPU_TOKENS
        self._scratch = SCRATCH_BYTES[self._device.type]
        self._table: tuple[NDArray[np.uint32], torch.Tensor] | None = None

    @property
    def name(self) -> str:
        """Return "torch" and the device, as logs and metrics name it."""
        return f"torch ({self._device})"

    def fingerprints(self, batch: TokenBatch, *, window: int, min_distinct: int) -> Fingerprints:
        """Return the fingerprints of every sequence, as `detector.sketch.flat` defines them."""
        with _memory_errors():
            table = self._device_table(batch)
            parts = []
            for starts in chunks(batch.offsets, self._tokens):
                tokens = self._to_device(batch.tokens[starts[0] : starts[-1]])
                offsets = self._to_device(starts - starts[0])
                parts.append(
                    _to_host(
                        fingerprints(
                            tokens, offsets, table, window=window, min_distinct=min_distinct
                        )
                    )
                )
            return joined(parts)

    def shingles(self, batch: TokenBatch, *, min_distinct: int, window: int | None) -> Shingles:
        """Return every shingle, as `detector.sketch.flat` defines them."""
        count = len(batch.tokens)
        keys, masked = np.zeros(count, np.int64), np.zeros(count, np.bool_)
        picked = None if window is None else np.zeros(count, np.bool_)
        hashes = batch.tokens if batch.table is None else batch.table[batch.tokens]
        with _memory_errors():
            for starts in chunks(batch.offsets, self._tokens):
                begin, end = starts[0], starts[-1] - (SHINGLE_TOKENS - 1)
                if begin >= end:
                    continue
                found = shingles(
                    self._to_device(hashes[begin : starts[-1]]),
                    self._to_device(starts - begin),
                    min_distinct=min_distinct,
                    window=window,
                )
                keys[begin:end] = found.keys.cpu().numpy()
                masked[begin:end] = found.masked.cpu().numpy()
                if picked is not None and found.picks is not None:
                    picked[begin + found.picks.cpu().numpy()] = True
        return Shingles(keys, masked, picked, batch.offsets)

    def signatures(self, keys: Keys, offsets: Offsets, header: SketchHeader) -> Signatures:
        """Return one sketch per set, as `detector.sketch.minhash` defines them."""
        values = np.empty((len(offsets) - 1, header.num_perm), np.uint32)
        begin = 0
        with _memory_errors():
            for starts in chunks(offsets, self._tokens):
                found = signatures(
                    self._to_device(keys[starts[0] : starts[-1]]),
                    self._to_device(starts - starts[0]),
                    header,
                    scratch_bytes=self._scratch,
                )
                values[begin : begin + len(starts) - 1] = found.cpu().numpy().view(np.uint32)
                begin += len(starts) - 1
        return values

    def _device_table(self, batch: TokenBatch) -> torch.Tensor | None:
        """Return the token table on the device; it is sent again only when it was replaced."""
        if batch.table is None:
            return None
        if self._table is None or self._table[0] is not batch.table:
            self._table = (batch.table, self._to_device(batch.table))
        return self._table[1]

    def _to_device(self, values: NDArray[np.uint32] | NDArray[np.int64]) -> torch.Tensor:
        bits = values.view(np.int32) if values.dtype == np.uint32 else values
        return torch.tensor(bits, device=self._device)


@contextmanager
def _memory_errors() -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise DeviceMemoryError(
            "the accelerator has no memory for a batch", hint="the batch is redone on the CPU"
        ) from error


def _to_host(found: DeviceFingerprints) -> Fingerprints:
    return Fingerprints(
        found.keys.cpu().numpy(),
        found.positions.to(torch.int32).cpu().numpy(),
        found.offsets.cpu().numpy(),
    )
