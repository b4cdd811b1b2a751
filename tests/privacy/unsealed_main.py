"""The program as a build that seals no hash and tags no shingle: the sweep of the topics must tell.

python -m tests.privacy.unsealed_main run worker ...
"""

import os
from typing import Any

from detector import pipeline
from detector.cli.app import main
from detector.index.shared_memory import SharedMemory
from detector.sketch.shingle import Keys
from ingest.schema_batches import NONCE_BYTES, SALT_BYTES
from ingest.sealing import KeyRing, Sealed


def _seal(_ring: KeyRing, _key_id: str, plain: bytes, _associated: bytes) -> Sealed:
    return Sealed(os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES), plain)


def _open(_ring: KeyRing, _key_id: str, sealed: Sealed, _associated: bytes) -> bytes:
    return sealed.data


_real_take = getattr(pipeline, "take")  # noqa: B009 - a name that the module only imports


def _take(*given: Any) -> tuple[Any, ...]:
    *_, salt = given
    made, (positions, pool_keys, _, *rest) = _real_take(*given)
    return made, (positions, pool_keys, pool_keys ^ salt, *rest)


def _tagged(_memory: SharedMemory, keys: Keys) -> Keys:
    return keys


BUILD = (
    (KeyRing, "seal", _seal),
    (KeyRing, "open", _open),
    (SharedMemory, "tagged", _tagged),
    (pipeline, "take", _take),
)
"""What this build replaces: where, its name, and by what."""

if __name__ == "__main__":
    for owner, name, replacement in BUILD:
        setattr(owner, name, replacement)
    main()
