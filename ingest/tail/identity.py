"""Which file it was: device, inode and a salted digest of its first bytes, whatever it is called.

An inode number is used again once its file is gone, and a rotated file may be a copy or compressed:
the head tells. The salt is a checkpoint's own and random, so that digests say nothing elsewhere.
"""

import hashlib
from typing import Final

import msgspec

HEAD_BYTES: Final = 1024
"""How much of a file is its head: a few lines, with times and ids that no other file has."""

KNOWN_BYTES: Final = 128
"""With less, files are not told apart: a line begins with its time, and many lines have the same.
A checkpoint then goes to the beginning of such a file only, as if it were empty."""

FREED: Final = b"\0"
"""What a file begins with once its head is freed: no text does, a hole reads as zeros."""

DIGEST_BYTES: Final = 8
"""Two files out of a million agree by chance with probability 2^-25."""

SALT_BYTES: Final = 16


class FileIdentity(msgspec.Struct, frozen=True):
    """One file as it was when it was last looked at; `head_bytes` is how much of it was digested.

    Zero stands for a file that held less than KNOWN_BYTES, or whose head is freed: its inode must
    do, and FREED.
    """

    device: int
    inode: int
    head_bytes: int
    head_digest: str

    def is_same_inode(self, device: int, inode: int) -> bool:
        """Tell whether these are the numbers of the file."""
        return (device, inode) == (self.device, self.inode)

    def has_head(self, head: bytes, salt: bytes) -> bool:
        """Tell whether a file that begins with `head` may be the file, or a copy of it."""
        return digest(head[: self.head_bytes], salt) == self.head_digest

    def begins(self, head: bytes, salt: bytes) -> bool:
        """Tell whether a file that begins with `head` is the file by that alone, packed or not."""
        enough = self.head_bytes >= KNOWN_BYTES or 0 < self.head_bytes == len(head)
        return enough and self.has_head(head, salt)


def identity_of(device: int, inode: int, head: bytes, salt: bytes) -> FileIdentity:
    """Return the identity of a file that begins with `head`; all freed ones begin alike."""
    told = b"" if head.startswith(FREED) else head
    return FileIdentity(device, inode, len(told), digest(told, salt))


def digest(head: bytes, salt: bytes) -> str:
    """Return the digest of a head as hex."""
    return hashlib.blake2b(head, digest_size=DIGEST_BYTES, salt=salt).hexdigest()
