"""What workers tell each other about responses, as bytes: sketches of them, sealed.

A reader without the secret learns which worker told a partition how many bytes and when. The number
of the partition is authenticated, so that a record cannot be moved to another one.
"""

from typing import Annotated, Final

import msgspec
import numpy as np

from detector.errors import RecordError
from detector.index.response_sketch import ResponseSketch
from detector.index.showings import ranges_of
from ingest.schema_batches import NONCE_BYTES, SALT_BYTES, KeyId
from ingest.sealing import KeyRing, Sealed

MAX_SKETCHES: Final = 128
"""Sketches of one record at most: 1.2 KB each when full, so half of what a broker takes."""

MAX_BAND_BYTES: Final = 1024 * 1024
"""Largest record that is looked at: a broker's default limit."""

_MAGIC: Final = "bands/1"
_ASSOCIATED: Final = b"bleedwatch/1 bands of %d in %d"
_HINT: Final = "check who else writes to this topic, and that all workers have one version"


class BandsTold(msgspec.Struct, frozen=True, array_like=True):
    """What one record says: sketches, and up to which offset of this partition all is judged.

    0 says nothing about that: only who has sent the findings may tell.
    """

    sketches: Annotated[tuple[ResponseSketch, ...], msgspec.Meta(max_length=MAX_SKETCHES)] = ()
    sent_upto: Annotated[int, msgspec.Meta(ge=0)] = 0


class _Envelope(msgspec.Struct, frozen=True, array_like=True):
    magic: str
    key_id: KeyId
    salt: Annotated[bytes, msgspec.Meta(min_length=SALT_BYTES, max_length=SALT_BYTES)]
    nonce: Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
    data: bytes


_ENVELOPE: Final = msgspec.msgpack.Decoder(_Envelope)
_TOLD: Final = msgspec.msgpack.Decoder(BandsTold)


def encode(told: BandsTold, *, ring: KeyRing, partition: int, ranges: int) -> bytes:
    """Return a record for a partition of `ranges`, sealed under the current secret."""
    sealed = ring.seal(ring.key_id, msgspec.msgpack.encode(told), _ASSOCIATED % (partition, ranges))
    return msgspec.msgpack.encode(_Envelope(_MAGIC, ring.key_id, *sealed))


def decode(value: bytes | None, *, ring: KeyRing, partition: int, ranges: int) -> BandsTold:
    """Return what a record of a partition says.

    Raises RecordError with reason malformed, unknown_key, seal_broken or wrong_range.
    """
    if value is None or len(value) > MAX_BAND_BYTES:
        raise _malformed("it is empty or too large")
    try:
        envelope = _ENVELOPE.decode(value)
    except (msgspec.MsgspecError, RecursionError):
        raise _malformed("it has no envelope of this version") from None
    if envelope.magic != _MAGIC:
        raise _malformed("it is of another version")
    sealed = Sealed(envelope.salt, envelope.nonce, envelope.data)
    plain = ring.open(envelope.key_id, sealed, _ASSOCIATED % (partition, ranges))
    try:
        told = _TOLD.decode(plain)
    except (msgspec.MsgspecError, RecursionError):
        raise _malformed("what is sealed in it has another form") from None
    for sketch in told.sketches:
        _check(sketch, partition, ranges)
    return told


def _check(sketch: ResponseSketch, partition: int, ranges: int) -> None:
    if not sketch.is_whole:
        raise _malformed("a sketch has broken arrays")
    if np.any(ranges_of(sketch.band_tags(), ranges) != partition):
        raise RecordError(
            "wrong_range", "bands are in a partition that is not their range", hint=_HINT
        )


def _malformed(what: str) -> RecordError:
    return RecordError("malformed", f"a record about responses cannot be read: {what}", hint=_HINT)
