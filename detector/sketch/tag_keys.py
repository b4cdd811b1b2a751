"""The tag key of a deployment, split by purpose, and the party numbers that every worker agrees on.

A party's number is a keyed hash of its name cut to 30 bits, so workers need no table to translate
numbers, which would grow with every name ever seen. Two given parties share a number with
probability 2^-30; a bleed between exactly those two would be missed.
"""

import hashlib
from typing import Final

from detector.sketch.siphash import KEY_BYTES

PARTY_BITS: Final = 30
"""What a mark of the day's memory and an owner of the window's store have room for."""

_MOST_PARTIES: Final = (1 << PARTY_BITS) - 2
"""Numbers from 1 on: 0 is nobody, and a mark holds the number plus one."""


class TagKeys:
    """The keys under which shingles, bands and party names become tags; the repr hides them."""

    __slots__ = ("_parties", "bands", "shingles")

    def __init__(self, tag_key: bytes) -> None:
        self.shingles = _derive(tag_key, b"shingles", KEY_BYTES)
        self.bands = _derive(tag_key, b"bands", KEY_BYTES)
        self._parties = _derive(tag_key, b"parties", 2 * KEY_BYTES)

    def __repr__(self) -> str:
        return "TagKeys(hidden)"

    def party(self, name: str) -> int:
        """Return the number of the party of that name, from 1 to 2^30 - 2."""
        digest = hashlib.blake2b(name.encode(), key=self._parties, digest_size=8).digest()
        return int.from_bytes(digest, "little") % _MOST_PARTIES + 1


def _derive(tag_key: bytes, purpose: bytes, size: int) -> bytes:
    return hashlib.blake2b(b"bleedwatch/1 " + purpose, key=tag_key, digest_size=size).digest()
