"""Batches v1: many records of one KV pool in one message, sequences sealed, the others clear.

A batch of sequences is a clear index and, beside it, the token hashes of all its records under the
deployment's key. The records of a batch are decoded one by one, so a bad one costs only itself.
"""

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from ingest.schema_records import Name, Record

MAX_BATCH_TOKENS: Final = 262_144
"""Most hashes of one batch: what a message at the default broker limit (1 MiB) holds without
compression. A message that unpacks to more was made to exhaust memory."""

MAX_BATCH_RECORDS: Final = 4096
"""Most records of one batch: a sequence's metadata are 200 bytes and more, so the target size of
256 KB is reached with a third of this."""

NONCE_BYTES: Final = 12
"""96 bits, the nonce of AES-GCM (NIST SP 800-38D, 8.2)."""

SALT_BYTES: Final = 16
"""128 bits: two batches share a salt, and so a key, once in 2^64 batches."""

KeyId = Annotated[str, Meta(pattern="^[0-9a-f]{8}$")]
_Place = Annotated[int, Meta(ge=0, le=MAX_BATCH_TOKENS)]
_Places = Annotated[list[_Place], Meta(max_length=MAX_BATCH_RECORDS)]
_Records = Annotated[list[msgspec.Raw], Meta(min_length=1, max_length=MAX_BATCH_RECORDS)]


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """One compressed stretch of the sealed part: its packed bytes and the tokens they hold."""

    packed_bytes: Annotated[int, Meta(ge=0)]
    tokens: _Place


class BatchIndex(Record):
    """What a batch says in the clear: its pool, its key, and its records without their hashes.

    Record i has the `counts[i]` tokens from `starts[i]` on, counted over all frames in their order.
    The records keep the order they were packed in; frames hold one tenant's tokens each.
    """

    kind_name: ClassVar[str] = "batch"
    key_id: KeyId
    kv_pool: Name
    starts: _Places
    counts: _Places
    frames: Annotated[list[Frame], Meta(max_length=MAX_BATCH_RECORDS)]
    records: _Records


class SequenceBatch(Record):
    """Sequences of one KV pool. `index` is an encoded BatchIndex, authenticated with `sealed`."""

    kind_name: ClassVar[str] = "batch"
    index: bytes
    salt: Annotated[bytes, Meta(min_length=SALT_BYTES, max_length=SALT_BYTES)]
    nonce: Annotated[bytes, Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
    sealed: bytes

    def __repr__(self) -> str:
        """Sizes only."""
        return f"SequenceBatch(index={len(self.index)} bytes, sealed={len(self.sealed)} bytes)"


class RecordBatch(Record):
    """Records of one kind that hold no tokens, all in the clear, of one KV pool."""

    kv_pool: Name
    records: _Records


class RuntimeBatch(RecordBatch):
    """A batch of RuntimeSample."""

    kind_name: ClassVar[str] = "runtime-batch"


class EngineEventBatch(RecordBatch):
    """A batch of EngineEvent."""

    kind_name: ClassVar[str] = "engine-event-batch"


class RequestBatch(RecordBatch):
    """A batch of RequestRow."""

    kind_name: ClassVar[str] = "request-batch"
