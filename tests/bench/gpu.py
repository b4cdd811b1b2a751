"""Device against one CPU core: ids to fingerprints, sketches, matching. `python -m tests.bench.gpu`

Takes under 5 minutes. Proves the device's bits against the CPU's on every batch, then measures
kernels alone (data on the device) and whole calls (transfers included), and the memory traffic of
the kernels as a share of a measured device copy. Without a CUDA device everything runs on the CPU.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from detector.backend import NumbaBackend
from detector.benchmarks.workload import token_batch
from detector.sketch.batch import TokenBatch
from detector.sketch.header import SketchHeader
from detector.torch_path.backend import SCRATCH_BYTES, TorchBackend, has_cuda
from detector.torch_path.fingerprints import fingerprints
from detector.torch_path.minhash import signatures
from detector.torch_path.runs import WindowRuns
from tests.unit.batches import assert_equal

WINDOW, MIN_DISTINCT, LENGTH = 8, 6, 1_000
BATCH_TOKENS = (65_536, 1_048_576, 4_194_304)
COPY_BYTES = 1 << 28
ROUNDS = 7


class Traffic(TorchDispatchMode):  # type: ignore[misc] # torch has no types here
    """Counts the bytes that operations read and write, each tensor once per operation."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not func.is_view:
            for value in tree_leaves((args, kwargs, result)):
                if isinstance(value, torch.Tensor):
                    self.bytes += value.numel() * value.element_size()
        return result


def seconds(work: Callable[[], object], device: str, rounds: int = ROUNDS) -> float:
    """Return the median wall time of one call, with the device's queue drained."""
    times = []
    for _ in range(rounds + 1):
        if device == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return float(np.median(times[1:]))


def copy_bandwidth(device: str) -> float:
    """Return bytes per second, read and written, of a device copy."""
    source = torch.zeros(COPY_BYTES, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * COPY_BYTES / seconds(lambda: target.copy_(source), device)


def measure(batch: TokenBatch, device: str, copy: float) -> dict[str, Any]:
    """Prove one batch bit-identical and return its figures."""
    header, cpu, backend = SketchHeader(), NumbaBackend(), TorchBackend(device)
    options: dict[str, int] = {"window": WINDOW, "min_distinct": MIN_DISTINCT}
    expected = cpu.fingerprints(batch, **options)
    assert_equal(backend.fingerprints(batch, **options), expected)
    sketches = cpu.signatures(expected.keys, expected.offsets, header)
    np.testing.assert_array_equal(
        backend.signatures(expected.keys, expected.offsets, header), sketches
    )
    assert batch.table is not None
    tokens, offsets, table = (
        torch.tensor(each, device=device)
        for each in (batch.tokens.view(np.int32), batch.offsets, batch.table.view(np.int32))
    )
    keys = torch.tensor(expected.keys, device=device)
    sets = torch.tensor(expected.offsets, device=device)
    scratch = SCRATCH_BYTES[device]
    core = seconds(lambda: cpu.fingerprints(batch, **options), "cpu")
    whole = seconds(lambda: backend.fingerprints(batch, **options), device)
    with Traffic() as traffic:
        fingerprints(tokens, offsets, table, **options)
    kernels = seconds(lambda: fingerprints(tokens, offsets, table, **options), device)
    core_sketch = seconds(lambda: cpu.signatures(expected.keys, expected.offsets, header), "cpu")
    device_sketch = seconds(lambda: signatures(keys, sets, header, scratch_bytes=scratch), device)
    count = len(batch.tokens)
    return {
        "tokens": count,
        "one_core_ns_per_token": core / count * 1e9,
        "device_ns_per_token": kernels / count * 1e9,
        "device_with_transfers_ns_per_token": whole / count * 1e9,
        "fingerprints_vs_one_core": core / kernels,
        "fingerprints_with_transfers_vs_one_core": core / whole,
        "bytes_per_token": traffic.bytes / count,
        "share_of_copy_bandwidth": traffic.bytes / kernels / copy,
        "sketches_vs_one_core": core_sketch / device_sketch,
        "match_ns_per_fingerprint": match_time(keys, device) * 1e9,
    }


def match_time(keys: torch.Tensor, device: str) -> float:
    """Return seconds per key of matching a batch against a window of ten such batches."""
    runs = WindowRuns()
    for number in range(10):
        moved = keys ^ number
        runs.insert(
            moved, torch.arange(len(keys), device=device), torch.zeros_like(keys), newest_ms=0
        )
    found = runs.match(keys)
    known = np.unique(keys.cpu().numpy())
    assert len(torch.unique(keys[found.query])) == len(known)
    return seconds(lambda: runs.match(keys), device, rounds=3) / max(len(keys), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if has_cuda() else "cpu")
    parser.add_argument("--json", type=Path)
    wanted = parser.parse_args()
    began = time.monotonic()
    torch.set_num_threads(1)
    copy = copy_bandwidth(wanted.device)
    name = torch.cuda.get_device_name() if wanted.device == "cuda" else platform.processor()
    report = {
        "device": wanted.device, "name": name, "torch": torch.__version__,
        "copy_gb_per_s": copy / 1e9,
        "batches": [
            measure(token_batch(tokens, length=LENGTH, seed=1), wanted.device, copy)
            for tokens in BATCH_TOKENS
        ],
        "bit_identical": True,
    }  # fmt: skip
    report["seconds"] = time.monotonic() - began
    text = json.dumps(report, indent=1)
    print(text)
    if wanted.json:
        wanted.json.write_text(text)


if __name__ == "__main__":
    main()
