"""Token ids to fingerprints for a whole batch on a device, with no Python per sequence."""

from typing import NamedTuple

import torch

from detector.sketch.shingle import SHINGLE_TOKENS
from detector.sketch.winnow import NEVER_PICKED
from detector.torch_path.arithmetic import shingle_keys
from detector.torch_path.winnow import few_distinct, flat_winnow, repetitive


class DeviceFingerprints(NamedTuple):
    """Picked shingles on the device: int64 `keys`, `positions` in their sequence, `offsets`."""

    keys: torch.Tensor
    positions: torch.Tensor
    offsets: torch.Tensor


class DeviceShingles(NamedTuple):
    """Every shingle on the device: `keys`, those of low complexity, the sample's positions."""

    keys: torch.Tensor
    masked: torch.Tensor
    picks: torch.Tensor | None


def shingles(
    hashes: torch.Tensor, offsets: torch.Tensor, *, min_distinct: int, window: int | None
) -> DeviceShingles:
    """Return the shingle from every position on, for the bits of uint32 hashes as int32 (n,).

    There are n - 9; those that touch two sequences are never picked. n is at least 10.
    """
    keys = shingle_keys(hashes.to(torch.int64).bitwise_and_(0xFFFFFFFF))
    masked = few_distinct(hashes.unfold(0, SHINGLE_TOKENS, 1).T, min_distinct)
    if window is None:
        return DeviceShingles(keys, masked, None)
    starts = offsets[:-1]
    ends = torch.maximum(offsets[1:] - (SHINGLE_TOKENS - 1), starts)
    picks = flat_winnow(keys.masked_fill(masked, int(NEVER_PICKED)), starts, ends, window)
    return DeviceShingles(keys, masked, picks[~masked[picks]])


def fingerprints(
    tokens: torch.Tensor,
    offsets: torch.Tensor,
    table: torch.Tensor | None,
    *,
    window: int,
    min_distinct: int,
) -> DeviceFingerprints:
    """Return the fingerprints of every sequence; all tensors lie on one device.

    `tokens` are int32 ids with a `table` of hashes, or int32 hashes without one, both the bit
    patterns of uint32; `offsets` are int64.
    """
    hashes = tokens if table is None else table.index_select(0, tokens)
    if len(hashes) < SHINGLE_TOKENS:
        none = torch.zeros(0, dtype=torch.int64, device=tokens.device)
        return DeviceFingerprints(none, none, torch.zeros_like(offsets))
    keys = shingle_keys(hashes.to(torch.int64).bitwise_and_(0xFFFFFFFF))
    starts = offsets[:-1]
    ends = torch.maximum(offsets[1:] - (SHINGLE_TOKENS - 1), starts)
    picks = flat_winnow(keys, starts, ends, window)
    picks = picks[~repetitive(hashes, picks, min_distinct)]
    behind = torch.searchsorted(picks, offsets)
    sequence = torch.searchsorted(offsets, picks, right=True) - 1
    return DeviceFingerprints(keys[picks], picks - offsets[sequence], behind)
