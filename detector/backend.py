"""Which library does the bulk work: numba, numpy or torch; and what happens when a device fails.

All backends are bit-identical, so the choice is one of speed only.
"""

import ctypes
import logging
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

from detector.errors import DeviceMemoryError, SettingsError
from detector.settings import BackendName
from detector.sketch import flat, minhash
from detector.sketch.batch import Fingerprints, Offsets, Shingles, TokenBatch
from detector.sketch.header import SketchHeader
from detector.sketch.minhash import Signatures
from detector.sketch.shingle import Keys

_log = logging.getLogger(__name__)


class Backend(Protocol):
    """Bulk work on many sequences at once."""

    @property
    def name(self) -> str:
        """What logs and metrics call it."""

    def fingerprints(self, batch: TokenBatch, *, window: int, min_distinct: int) -> Fingerprints:
        """Pick fingerprints as `winnow` does per sequence, less those of low complexity."""

    def shingles(self, batch: TokenBatch, *, min_distinct: int, window: int | None) -> Shingles:
        """Return every shingle, those of low complexity, and with a window the sample to index."""

    def signatures(self, keys: Keys, offsets: Offsets, header: SketchHeader) -> Signatures:
        """Return one MinHash sketch per set keys[offsets[i]:offsets[i+1]]."""


class NumpyBackend:
    """The reference; needs nothing but numpy."""

    name = "numpy"

    def fingerprints(self, batch: TokenBatch, *, window: int, min_distinct: int) -> Fingerprints:
        """Pick fingerprints; see `Backend`."""
        return flat.fingerprints(batch, window=window, min_distinct=min_distinct)

    def shingles(self, batch: TokenBatch, *, min_distinct: int, window: int | None) -> Shingles:
        """Shingle; see `Backend`."""
        return flat.shingles(batch, min_distinct=min_distinct, window=window)

    def signatures(self, keys: Keys, offsets: Offsets, header: SketchHeader) -> Signatures:
        """Sketch sets; see `Backend`."""
        return minhash.signatures(keys, offsets, header)


class NumbaBackend:
    """Compiled for this CPU at first use, then cached on disk."""

    name = "numba"

    def __init__(self) -> None:
        from detector.kernels import flat as kernel_flat  # noqa: PLC0415 - numba loads in 0.7 s
        from detector.kernels import minhash as kernel_minhash  # noqa: PLC0415

        self._fingerprints = kernel_flat.fingerprints
        self._shingles = kernel_flat.shingles
        self._signatures = kernel_minhash.signatures

    def fingerprints(self, batch: TokenBatch, *, window: int, min_distinct: int) -> Fingerprints:
        """Pick fingerprints; see `Backend`."""
        return self._fingerprints(batch, window=window, min_distinct=min_distinct)

    def shingles(self, batch: TokenBatch, *, min_distinct: int, window: int | None) -> Shingles:
        """Shingle; see `Backend`."""
        return self._shingles(batch, min_distinct=min_distinct, window=window)

    def signatures(self, keys: Keys, offsets: Offsets, header: SketchHeader) -> Signatures:
        """Sketch sets; see `Backend`."""
        return self._signatures(keys, offsets, header)


@dataclass(slots=True)
class FallbackBackend:
    """Works on a device, and redoes on the CPU whatever batch the device has no memory for.

    `redone` counts those batches. The first one is logged; the device is asked again for the next.
    """

    device: Backend
    cpu: Backend
    redone: int = 0

    @property
    def name(self) -> str:
        """The device's name: that is where the work goes."""
        return self.device.name

    def fingerprints(self, batch: TokenBatch, *, window: int, min_distinct: int) -> Fingerprints:
        """Pick fingerprints; see `Backend`."""
        try:
            return self.device.fingerprints(batch, window=window, min_distinct=min_distinct)
        except DeviceMemoryError as error:
            self._note(error)
        return self.cpu.fingerprints(batch, window=window, min_distinct=min_distinct)

    def shingles(self, batch: TokenBatch, *, min_distinct: int, window: int | None) -> Shingles:
        """Shingle; see `Backend`."""
        try:
            return self.device.shingles(batch, min_distinct=min_distinct, window=window)
        except DeviceMemoryError as error:
            self._note(error)
        return self.cpu.shingles(batch, min_distinct=min_distinct, window=window)

    def signatures(self, keys: Keys, offsets: Offsets, header: SketchHeader) -> Signatures:
        """Sketch sets; see `Backend`."""
        try:
            return self.device.signatures(keys, offsets, header)
        except DeviceMemoryError as error:
            self._note(error)
        return self.cpu.signatures(keys, offsets, header)

    def _note(self, error: DeviceMemoryError) -> None:
        self.redone += 1
        if self.redone == 1:
            _log.warning("%s: %s; redoing it with %s", self.name, error.what, self.cpu.name)


def choose_backend(wanted: BackendName) -> Backend:
    """Return the backend for a setting.

    `auto` takes torch only when it sees a CUDA device, else numba, else numpy; when torch is there
    without a device, one line of the log says so. Raises SettingsError for a backend that is asked
    for by name and not installed.
    """
    if wanted == "numpy":
        return NumpyBackend()
    if wanted == "numba":
        _require("numba", extra="worker")
        return NumbaBackend()
    if wanted == "torch":
        _require("torch", extra="gpu")
        return _torch()
    cpu = _cpu()
    if not find_spec("torch"):
        return cpu
    if _has_driver():
        from detector.torch_path.backend import has_cuda  # noqa: PLC0415 - torch loads in 4 s

        if has_cuda():
            return _torch()
    _log.info("torch is installed but sees no CUDA device; using %s", cpu.name)
    return cpu


def _torch() -> Backend:
    from detector.torch_path.backend import TorchBackend, has_cuda  # noqa: PLC0415

    if not has_cuda():
        _log.warning("torch sees no CUDA device and runs on the CPU, where numba is faster")
    return FallbackBackend(TorchBackend("cuda" if has_cuda() else "cpu"), _cpu())


def _has_driver() -> bool:
    """Tell whether the CUDA driver is there, in less time than it takes to load torch."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def _cpu() -> Backend:
    return NumbaBackend() if find_spec("numba") else NumpyBackend()


def _require(module: str, *, extra: str) -> None:
    if not find_spec(module):
        raise SettingsError(
            f"the backend {module} is not installed",
            hint=f"pip install 'bleedwatch[{extra}]' or set detection.backend to auto",
        )
