"""Sequence records and hostile batches made by hand, for the tests of the wire format."""

from typing import Any

import msgspec
import numpy as np

from detector.model import Kind, Role, Span
from detector.sketch.token_table import Secret
from ingest.compression import compress
from ingest.envelope import ASSOCIATED
from ingest.schema import encode
from ingest.schema_batches import BatchIndex, SequenceBatch
from ingest.schema_records import SequenceRecord
from ingest.sealing import KeyRing

SECRET_BYTES = bytes(range(32))
SECRET = Secret(SECRET_BYTES)
OLD_SECRET = Secret(bytes(range(100, 132)))
RING = KeyRing.of(SECRET)


def hashes(name: int, count: int) -> bytes:
    """Return `count` random token hashes; another name gives other ones."""
    return np.random.default_rng(name).integers(0, 2**32, count, np.uint32).tobytes()


def record(tokens: bytes = b"", **more: Any) -> SequenceRecord:
    """Return the prompt of a request of tenant `acme` in pool `p`, unless told otherwise."""
    given: dict[str, Any] = {
        "tenant": "acme",
        "request_id": "r-1",
        "kv_pool": "p",
        "engine": "e",
        "model": "m",
        "kind": Kind.PROMPT,
        "started_at_ms": 1_000,
        "ended_at_ms": 1_000,
        "token_hashes": tokens,
        "token_count": len(tokens) // 4,
        "spans": (Span(Role.USER, 0, len(tokens) // 4),) if tokens else (),
    }
    return SequenceRecord(**(given | more))


def sealed_by_hand(
    given: list[SequenceRecord], /, *, ring: KeyRing = RING, schema: str = "batch/1", **index: Any
) -> bytes:
    """Return a batch that is sealed properly, with `index` in place of what belongs there."""
    packed = compress((one.tenant, one.token_hashes) for one in given)
    clear = [msgspec.structs.replace(one, token_hashes=b"") for one in given]
    made: dict[str, Any] = {
        "key_id": ring.key_id,
        "kv_pool": "p",
        "starts": packed.starts,
        "counts": [len(one.token_hashes) // 4 for one in given],
        "frames": packed.frames,
        "records": [msgspec.Raw(encode(one)) for one in clear],
    }
    data = index.pop("data", packed.data)
    encoded = encode(BatchIndex(**(made | index)))
    sealed = ring.seal(ring.key_id, data, ASSOCIATED + encoded)
    return encode(
        SequenceBatch(
            schema=schema, index=encoded, salt=sealed.salt, nonce=sealed.nonce, sealed=sealed.data
        )
    )
