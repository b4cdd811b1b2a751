"""MinHash sketches of many sets on a device, bit-identical to `detector/sketch/minhash.py`."""

import numpy as np
import torch

from detector.sketch.header import SketchHeader
from detector.sketch.minhash import permutations
from detector.torch_path.arithmetic import premixed

BLOCK = 64
"""Hashes reduced together before sets are told apart. A set's last block is filled up with its last
hash, which changes no minimum; without blocks every hash would be an atomic update."""

_TOP_BIT = -(1 << 31)


def signatures(
    keys: torch.Tensor, offsets: torch.Tensor, header: SketchHeader, *, scratch_bytes: int
) -> torch.Tensor:
    """Return one sketch per set as int32 bit patterns, shape (sets, num_perm).

    Set i is keys[offsets[i]:offsets[i+1]]. As many permutations at once as fit `scratch_bytes`.
    """
    device = keys.device
    a, b = (
        torch.tensor(values.view(np.int32), device=device)[:, None, None]
        for values in permutations(header)
    )
    sets = len(offsets) - 1
    values = torch.full((header.num_perm, sets), -1 ^ _TOP_BIT, dtype=torch.int32, device=device)
    if len(keys):
        blocks, owner = _blocks(premixed(keys), offsets)
        step = max(1, scratch_bytes // (4 * blocks.numel()))
        for begin in range(0, header.num_perm, step):
            some = slice(begin, begin + step)
            permuted = torch.add(b[some], a[some] * blocks).bitwise_xor_(_TOP_BIT)
            least = permuted.amin(dim=2)
            values[some].scatter_reduce_(1, owner.expand(len(least), -1), least, "amin")
    return values.bitwise_xor_(_TOP_BIT).T.contiguous()


def _blocks(hashes: torch.Tensor, offsets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Lay the sets out in whole blocks; return (blocks (n, BLOCK), set of each block (n,))."""
    counts = offsets[1:] - offsets[:-1]
    needed = (counts + (BLOCK - 1)) // BLOCK
    total = int(needed.sum())
    owner = torch.repeat_interleave(
        torch.arange(len(counts), device=hashes.device), needed, output_size=total
    )
    first = torch.arange(total, device=hashes.device) - (needed.cumsum(0) - needed)[owner]
    begins = offsets[owner] + first * BLOCK
    at = begins[:, None] + torch.arange(BLOCK, device=hashes.device)
    at = torch.minimum(at, (offsets[owner + 1] - 1)[:, None])
    return hashes[at], owner
