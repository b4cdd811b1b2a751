"""Seals bytes under the deployment's key, and opens what the current or an earlier key sealed.

AES-256-GCM under a key of the batch's own: HKDF-SHA256 of the deployment's seal key and a random
128-bit salt. So the random 96-bit nonce is safe however many batches a deployment seals: under one
key for all, 2^32 batches would be the limit (NIST SP 800-38D, 8.3), ten days of 5,000 a second.
"""

import os
from collections.abc import Iterable
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from detector.errors import RecordError
from detector.sketch.token_table import SECRET_BYTES, Keys, Secret
from ingest.schema_batches import NONCE_BYTES, SALT_BYTES

TAG_BYTES: Final = 16
"""The tag of AES-GCM, behind the ciphertext."""

_PURPOSE: Final = b"bleedwatch/1 batch"


class Sealed(NamedTuple):
    """A ciphertext with its tag, and what besides the key is needed to open it."""

    salt: bytes
    nonce: bytes
    data: bytes


class KeyRing:
    """The keys of the current secret, which seals, and of earlier ones, which only open.

    Never changes; a rotation makes a new ring. Safe to share between threads.
    """

    def __init__(self, current: Keys, earlier: Iterable[Keys] = ()) -> None:
        self._current = current
        self._by_id = {keys.key_id: keys for keys in (*earlier, current)}

    @classmethod
    def of(cls, current: Secret, *earlier: Secret) -> "KeyRing":
        """Return the ring of these secrets."""
        return cls(current.keys(), [secret.keys() for secret in earlier])

    def __repr__(self) -> str:
        return f"KeyRing({self.key_id}, {len(self._by_id) - 1} earlier, hidden)"

    @property
    def key_id(self) -> str:
        """The public name of the current secret."""
        return self._current.key_id

    @property
    def key_ids(self) -> frozenset[str]:
        """The names of all secrets that this ring opens."""
        return frozenset(self._by_id)

    def seal(self, key_id: str, plain: bytes, associated: bytes) -> Sealed:
        """Encrypt `plain` and authenticate it together with `associated`, which stays clear.

        Hashes that were made under an earlier secret are sealed under it as well. Raises
        RecordError("unknown_key") when the ring has no such key.
        """
        salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
        cipher = self._cipher(key_id, salt)
        return Sealed(salt, nonce, cipher.encrypt(nonce, plain, associated))

    def open(self, key_id: str, sealed: Sealed, associated: bytes) -> bytes:
        """Return what was sealed.

        Raises RecordError("unknown_key") when the ring has no such key, and "seal_broken" when
        ciphertext, salt, nonce or `associated` are not those that were sealed.
        """
        cipher = self._cipher(key_id, sealed.salt)
        try:
            return cipher.decrypt(sealed.nonce, sealed.data, associated)
        except InvalidTag:
            raise RecordError(
                "seal_broken",
                "the batch was changed after it was sealed, or sealed under another secret",
                hint="find who writes to this topic besides our own processes",
            ) from None

    def _cipher(self, key_id: str, salt: bytes) -> AESGCM:
        keys = self._by_id.get(key_id)
        if keys is None:
            raise RecordError(
                "unknown_key",
                "the batch is sealed under a secret that is not here",
                hint="list the key file that it was sealed under in sealing.accepted_key_files",
            )
        derived = HKDF(algorithm=SHA256(), length=SECRET_BYTES, salt=salt, info=_PURPOSE)
        return AESGCM(derived.derive(keys.seal_key))
