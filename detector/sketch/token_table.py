"""The keyed token table: one secret per deployment turns token ids into uint32 hashes.

A per-token hash is a substitution cipher: it keeps ids out of sight of people, it does not protect
a stream against someone who may send prompts. So hashes leave a process only sealed.
"""

import contextlib
import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeGuard

import msgspec
import numpy as np
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from detector.errors import KeyFileError, RecordError
from detector.model import Hashes

SECRET_BYTES: Final = 32
"""Length of the deployment secret and of each derived key: SHA-256's own strength."""

MAX_TOKEN_ID: Final = 2**20 - 1
"""Largest token id accepted. The largest public vocabularies have 262,144 entries."""

FIRST_ENTRIES: Final = 2**18
"""Entries made at first use: covers today's vocabularies in 9 ms."""

_AnyIds = Sequence[int] | NDArray[np.integer[Any]]

_TokenId = Annotated[int, msgspec.Meta(ge=0, le=MAX_TOKEN_ID)]


class Secret:
    """The 32-byte deployment secret. Its repr and str never show the bytes."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        if len(value) != SECRET_BYTES:
            raise KeyFileError(f"the secret must have {SECRET_BYTES} bytes")
        self._value = value

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def keys(self) -> "Keys":
        """Split the secret by HKDF-SHA256 (RFC 5869), one info label per purpose."""
        return Keys(
            hash_key=self._derive(b"hash"),
            seal_key=self._derive(b"seal"),
            tag_key=self._derive(b"tag"),
            key_id=self._derive(b"key id")[:4].hex(),
        )

    def _derive(self, purpose: bytes) -> bytes:
        info = b"bleedwatch/1 " + purpose
        return HKDF(algorithm=SHA256(), length=SECRET_BYTES, salt=None, info=info).derive(
            self._value
        )


@dataclass(frozen=True, slots=True, repr=False)
class Keys:
    """The keys of one secret: token table, sealing of batches, SipHash tags, and the public name.

    `key_id` (8 hex digits) names the secret without revealing it: it has an info label of its own.
    """

    hash_key: bytes
    seal_key: bytes
    tag_key: bytes
    key_id: str

    def __repr__(self) -> str:
        return f"Keys({self.key_id}, hidden)"


class TokenTable:
    """uint32 hash of every token id under one hash key; grows by doubling when an id asks for it.

    Entry i is bytes 4i..4i+3 (little-endian) of SHAKE-256(hash_key) read as one endless stream, so
    growing never changes an entry. Two processes with one key agree on every hash. Safe to share
    between threads: growing replaces the array whole.
    """

    def __init__(self, hash_key: bytes, *, key_id: str = "") -> None:
        self.key_id = key_id
        self._key = hash_key
        self._entries = np.empty(0, dtype=np.uint32)

    def __repr__(self) -> str:
        return f"TokenTable({self.key_id}, entries={len(self._entries)})"

    def hash(self, ids: _AnyIds) -> Hashes:
        """Return one uint32 per id, in order, by one gather.

        Raises RecordError("token_id_range") as `checked_ids` does.
        """
        checked = ids if _is_checked(ids) else checked_ids(ids)
        # numpy's own bound check tells that the table is too short or an id too large; its message
        # holds the id, so nothing is raised while that error is at hand
        with contextlib.suppress(IndexError):
            return self._entries[checked]
        return self._grow(checked_ids(checked))[checked]

    def _grow(self, checked: NDArray[np.uint32]) -> Hashes:
        count = max(FIRST_ENTRIES, 1 << int(checked.max()).bit_length())
        stream = hashlib.shake_256(self._key).digest(4 * count)
        self._entries = np.frombuffer(stream, dtype="<u4").astype(np.uint32)
        return self._entries


def _is_checked(ids: _AnyIds) -> TypeGuard[NDArray[np.uint32]]:
    """Tell a uint32 array, as `checked_ids` returns it; the gather finds what is too large."""
    return isinstance(ids, np.ndarray) and ids.dtype == np.uint32 and ids.ndim == 1


def checked_ids(ids: _AnyIds) -> NDArray[np.uint32]:
    """Return the ids as a uint32 array; each is an int (no bool, no float) in 0..MAX_TOKEN_ID.

    Raises RecordError("token_id_range") otherwise; neither it nor its cause names an id.
    """
    if isinstance(ids, np.ndarray):
        return _checked_array(ids)
    try:
        exact = msgspec.convert(ids, list[_TokenId])
    except (msgspec.ValidationError, RecursionError):
        raise _out_of_range() from None
    return np.frombuffer(array("I", exact), dtype=np.uintc).astype(np.uint32, copy=False)


def _checked_array(ids: NDArray[np.integer[Any]]) -> NDArray[np.uint32]:
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise _out_of_range()
    below_zero = ids.dtype.kind == "i" and len(ids) and int(ids.min()) < 0
    if below_zero or (len(ids) and int(ids.max()) > MAX_TOKEN_ID):
        raise _out_of_range()
    return ids.astype(np.uint32, copy=False)


def _out_of_range() -> RecordError:
    return RecordError(
        "token_id_range",
        f"a token id is not an integer from 0 to {MAX_TOKEN_ID}",
        hint="log the engine's own ids; ids of image or audio placeholders have no meaning here",
    )
