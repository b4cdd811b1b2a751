"""Keyed tags of KV blocks, salts and sessions: equal for equal values, and telling nothing else.

Block hashes are hashes of tokens that anybody can compute, and salts are often names of tenants,
so neither leaves as it is.
"""

import hashlib
from typing import Final

from ingest.kv_events.decode import BlockHash

TAG_BYTES: Final = 16
"""128 bits: no two of any number of blocks share a tag by chance."""


class BlockTags:
    """Makes tags under the tag key of a deployment; the repr hides it."""

    __slots__ = ("_key",)

    def __init__(self, tag_key: bytes) -> None:
        self._key = tag_key

    def __repr__(self) -> str:
        return "BlockTags(hidden)"

    def block(self, block: BlockHash) -> str:
        """Return the tag of a block's hash."""
        value = block if isinstance(block, bytes) else block.to_bytes(8, "little")
        return self._tag(b"kv block", value)

    def salt(self, salt: str) -> str:
        """Return the tag of a salt."""
        return self._tag(b"kv salt", salt.encode(errors="surrogatepass"))

    def session(self, session: str) -> str:
        """Return the tag of a session's name."""
        return self._tag(b"kv session", session.encode(errors="surrogatepass"))

    def _tag(self, purpose: bytes, value: bytes) -> str:
        return hashlib.blake2b(
            value, key=self._key, digest_size=TAG_BYTES, person=purpose
        ).hexdigest()
