"""Unsigned arithmetic on torch's signed integers: hashing that is bit-identical to the CPU's.

torch multiplies and adds modulo 2^32 or 2^64 as two's complement does, but shifts right with the
sign and compares signed. So a logical shift is a shift and a mask, and unsigned order is signed
order with the top bit flipped.
"""

import torch

from detector.sketch.minhash import FMIX_1, FMIX_2
from detector.sketch.shingle import BASE, MIX_1, MIX_2


def signed(value: int, bits: int) -> int:
    """Return the two's complement reading of an unsigned constant."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def shift_right(values: torch.Tensor, by: int, bits: int) -> torch.Tensor:
    """Shift right and fill with zeros, for values of `bits` bits."""
    return (values >> by).bitwise_and_((1 << (bits - by)) - 1)


_B1, _B2, _B4 = (signed(BASE**power, 64) for power in (1, 2, 4))
_M1, _M2 = signed(MIX_1, 64), signed(MIX_2, 64)
_F1, _F2 = signed(FMIX_1, 32), signed(FMIX_2, 32)


def shingle_keys(hashes: torch.Tensor) -> torch.Tensor:
    """Return the key of the 10 hashes from every position on, shape (n - 9,), for int64 (n,).

    The hashes are the uint32 values, so none is negative; n is at least 10.
    """
    pairs = torch.add(hashes[1:], hashes[:-1], alpha=_B1)
    fours = torch.add(pairs[2:], pairs[:-2], alpha=_B2)
    eights = torch.add(fours[4:], fours[:-4], alpha=_B4)
    keys = torch.add(pairs[8:], eights[: len(eights) - 2], alpha=_B2)
    keys = keys.bitwise_xor_(shift_right(keys, 33, 64)).mul_(_M1)
    keys = keys.bitwise_xor_(shift_right(keys, 33, 64)).mul_(_M2)
    return keys.bitwise_xor_(shift_right(keys, 33, 64))


def premixed(keys: torch.Tensor) -> torch.Tensor:
    """Return the low half of every key after MurmurHash3's 32-bit finalizer, as int32."""
    mixed = ((keys << 32) >> 32).to(torch.int32)
    mixed = mixed.bitwise_xor_(shift_right(mixed, 16, 32)).mul_(_F1)
    mixed = mixed.bitwise_xor_(shift_right(mixed, 13, 32)).mul_(_F2)
    return mixed.bitwise_xor_(shift_right(mixed, 16, 32))
