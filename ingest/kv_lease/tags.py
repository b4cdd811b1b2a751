"""Keyed tags in place of block handles: equal for equal blocks, and telling nothing else."""

import hashlib
from typing import Final

MIN_KEY_BYTES: Final = 16
"""128 bits: a shorter key could be guessed, and with it handles that are hashes of tokens."""

TAG_BYTES: Final = 16
"""128 bits: no two of any number of blocks share a tag by chance."""


class BlockTagger:
    """Makes the tags of one memory under a key that all engines of a pool share; hidden in reprs.

    `memory` names what the handles are numbered in, so that page 7 of two engines is two blocks.
    """

    __slots__ = ("_key", "_memory")

    def __init__(self, key: bytes, memory: str) -> None:
        if len(key) < MIN_KEY_BYTES:
            raise ValueError(f"the key of block tags has at least {MIN_KEY_BYTES} bytes")
        self._key = hashlib.blake2b(key, digest_size=32, person=b"kv lease").digest()
        self._memory = memory.encode(errors="surrogatepass")

    def __repr__(self) -> str:
        return "BlockTagger(hidden)"

    def tag(self, block: str) -> str:
        """Return the tag of a block, 32 hex digits."""
        name = self._memory + b"\0" + block.encode(errors="surrogatepass")
        return hashlib.blake2b(name, key=self._key, digest_size=TAG_BYTES).hexdigest()
