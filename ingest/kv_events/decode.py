"""Takes a published batch of KV events apart: tagged maps or tagged arrays, bounds checked.

Nothing here keeps token ids; whoever asks for a batch hashes them at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from detector.errors import RecordError
from detector.sketch.token_table import checked_ids
from ingest.limits import MAX_SIDE_TOKENS, MAX_TEXT_CHARS, MAX_TIME_MS

MAX_PAYLOAD_BYTES: Final = 64 * 1024 * 1024
"""Largest batch: a prompt of 2 million tokens with one block for each is 30 MB."""

MAX_HASH_BYTES: Final = 64
"""Longest block hash: SHA-512. vLLM uses SHA-256 or 64-bit numbers, SGLang 64-bit numbers."""

MAX_BLOCK_TOKENS: Final = 65_536
"""Largest block size; engines use 1 to 256, offloaded tiers a few thousand."""

_STORED: Final = (
    "block_hashes",
    "parent_block_hash",
    "token_ids",
    "block_size",
    "lora_id",
    "medium",
    "lora_name",
    "extra_keys",
)
"""Order of the fields in the array form: vLLM to 0.22, SGLang to 0.5.14 (the first six)."""

_REMOVED: Final = ("block_hashes", "medium")

_UNSIGNED: Final = 2**64

BlockHash: TypeAlias = int | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Blocks that were stored in a row behind `parent`, or reported as reused.

    `token_ids` is empty where the engine publishes none. `salt` is what the event itself says;
    with `salt_is_inherited` it stands with the chain's first block only. `salt_known` is False
    for publishers that never tell it.
    """

    blocks: tuple[BlockHash, ...] = field(repr=False)
    parent: BlockHash | None = field(repr=False)
    token_ids: NDArray[np.uint32] = field(repr=False)
    block_size: int
    medium: str
    group: int
    salt: str | None = field(repr=False)
    salt_known: bool
    salt_is_inherited: bool
    session: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Removed:
    """Blocks that were evicted or overwritten."""

    blocks: tuple[BlockHash, ...] = field(repr=False)
    medium: str
    group: int


@dataclass(frozen=True, slots=True)
class Cleared:
    """All blocks were dropped."""


KvEvent: TypeAlias = Stored | Removed | Cleared


@dataclass(frozen=True, slots=True)
class KvBatch:
    """The events of one message; `broken` has a reason for each that could not be used."""

    at_ms: int
    rank: int
    events: tuple[KvEvent, ...]
    broken: tuple[str, ...]


def decode_batch(payload: bytes) -> KvBatch:
    """Decode one message. Raises RecordError for one that is no batch at all.

    Reasons, also of single events: too_large, undecodable, wrong_type, time_range, unknown_event,
    token_count, token_id_range.
    """
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise RecordError("too_large", f"the batch is larger than {MAX_PAYLOAD_BYTES} bytes")
    try:
        batch = msgspec.msgpack.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        raise RecordError("undecodable", "the batch is not MessagePack") from None
    stamp, events, rank = _parts(batch)
    read: list[KvEvent] = []
    broken: list[str] = []
    for event in events:
        try:
            read.append(_event(event))
        except RecordError as error:
            broken.append(error.reason)
    return KvBatch(_time_ms(stamp), rank, tuple(read), tuple(broken))


def _parts(batch: object) -> tuple[object, Sequence[Any], int]:
    if isinstance(batch, Mapping):
        stamp, events, rank = batch.get("ts"), batch.get("events"), batch.get("data_parallel_rank")
    elif isinstance(batch, list) and len(batch) >= 2:
        stamp, events, rank = batch[0], batch[1], batch[2] if len(batch) > 2 else None
    else:
        raise _wrong("the batch")
    if not isinstance(events, list):
        raise _wrong("the list of events")
    return stamp, events, 0 if rank is None else _number(rank, 0, 2**31)


def _time_ms(stamp: object) -> int:
    if isinstance(stamp, int | float) and not isinstance(stamp, bool):
        at_ms = stamp * 1000
        if -MAX_TIME_MS <= at_ms <= MAX_TIME_MS:
            return int(at_ms)
    raise RecordError("time_range", "the batch has no usable time")


def _event(event: object) -> KvEvent:
    if isinstance(event, list) and event:
        tag, values = event[0], event[1:]
        names = {"BlockStored": _STORED, "BlockRemoved": _REMOVED}
        named = names.get(tag, ()) if isinstance(tag, str) else ()
        fields: Mapping[object, Any] = dict(zip(named, values, strict=False))
    elif isinstance(event, Mapping):
        tag, fields = event.get("type"), event
    else:
        raise _wrong("an event")
    if tag == "AllBlocksCleared":
        return Cleared()
    if tag == "BlockRemoved":
        return Removed(_hashes(fields), _medium(fields), _group(fields))
    if tag == "BlockStored":
        return _stored(fields, is_array=isinstance(event, list))
    raise RecordError("unknown_event", "an event is of an unknown type")


def _stored(fields: Mapping[object, Any], *, is_array: bool) -> Stored:
    blocks = _hashes(fields)
    size = _number(fields.get("block_size"), 0, MAX_BLOCK_TOKENS)
    tokens = fields.get("token_ids")
    if not isinstance(tokens, list):
        raise _wrong("the list of tokens")
    if len(tokens) > MAX_SIDE_TOKENS or (tokens and len(tokens) != len(blocks) * size):
        raise RecordError("token_count", "blocks do not hold as many tokens as their size says")
    parent = fields.get("parent_block_hash")
    keys = fields.get("extra_keys")
    has_keys = isinstance(keys, list)
    salt = _text(fields.get("cache_salt"))
    if isinstance(keys, list):
        salt = _salt_of(keys, fields.get("lora_name"))
    return Stored(
        blocks=blocks,
        parent=None if parent is None else _hash(parent),
        token_ids=checked_ids(tokens),
        block_size=size,
        medium=_medium(fields),
        group=_group(fields),
        salt=salt,
        salt_known=has_keys or not is_array,
        salt_is_inherited=has_keys,
        session=_text(fields.get("session_id")),
    )


def _salt_of(keys: Sequence[Any], lora_name: object) -> str | None:
    """Return the salt among the extra keys of the first block: vLLM puts it last, untagged."""
    first = keys[0] if keys else None
    if not isinstance(first, list):
        return None
    texts = [one for one in first if isinstance(one, str) and one != lora_name]
    return _text(texts[-1]) if texts else None


def _hashes(fields: Mapping[object, Any]) -> tuple[BlockHash, ...]:
    hashes = fields.get("block_hashes")
    if not isinstance(hashes, list):
        raise _wrong("the hashes of blocks")
    return tuple(_hash(one) for one in hashes)


def _hash(value: object) -> BlockHash:
    if isinstance(value, bytes) and 0 < len(value) <= MAX_HASH_BYTES:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value % _UNSIGNED  # SGLang's are signed
    raise _wrong("the hash of a block")


def _medium(fields: Mapping[object, Any]) -> str:
    return _text(fields.get("medium")) or "GPU"


def _group(fields: Mapping[object, Any]) -> int:
    group = fields.get("group_idx")
    return 0 if group is None else _number(group, 0, 2**31)


def _text(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS:
        raise _wrong("a text")
    return value or None


def _number(value: object, least: int, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise _wrong("a number")


def _wrong(what: str) -> RecordError:
    return RecordError("wrong_type", f"{what} has a wrong type, length or range")
