"""Compares somebody's own token ids with the digests of a finding; nothing leaves the process."""

from collections.abc import Iterable

import msgspec
import numpy as np

from detector.errors import InputError, KeyFileError, RecordError
from detector.finding import DIGEST_BYTES, Digests
from detector.sketch.shingle import SHINGLE_TOKENS, shingle_keys
from detector.sketch.siphash import tags
from detector.sketch.tag_keys import TagKeys
from detector.sketch.token_table import Keys, TokenTable, checked_ids
from ingest.key_file import load_secret


class Stretch(msgspec.Struct, frozen=True):
    """Tokens of the text that the finding rests on, from `start` up to, not including, `end`."""

    start: int
    end: int


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what a finding rests on a text holds: shingles, and where in its tokens."""

    shingles: int
    """Different shingles that the finding rests on, as far as they are kept."""
    held: int
    """Those of them that the text holds."""
    tokens: int
    """Length of the text."""
    stretches: tuple[Stretch, ...]


def keys_named(key_id: str, key_files: Iterable[str]) -> Keys:
    """Return the keys of that name; raises KeyFileError if none of the files holds them."""
    held = []
    for path in key_files:
        keys = load_secret(path).keys()
        if keys.key_id == key_id:
            return keys
        held.append(f"{path} holds {keys.key_id}")
    raise KeyFileError(
        f"the finding was made under key {key_id}, and {', '.join(held) or 'there is none here'}",
        where="key_file",
        hint="give the secret that the workers had when it was found; after a rotation that is the "
        "earlier one",
    )


def verify(ids: list[int], digests: Digests, keys: Keys) -> Verified:
    """Compare; raises InputError for ids that no tokenizer gives, or too few of them.

    `keys` are those that the digests are made under.
    """
    try:
        hashes = TokenTable(keys.hash_key, key_id=keys.key_id).hash(checked_ids(ids))
    except RecordError as error:
        raise InputError(error.what, where="the token ids", hint="list ids of one text") from None
    if len(hashes) < SHINGLE_TOKENS:
        raise InputError(
            f"the text has {len(hashes)} tokens; {SHINGLE_TOKENS} are the least that is compared",
            where="the text",
            hint="give all of it",
        )
    if not digests.shingles or len(digests.shingles) % DIGEST_BYTES:
        raise InputError(
            "the finding has no digests to compare with, or damaged ones",
            where="the finding",
            hint="take it anew from the API or the topic of findings",
        )
    wanted = np.unique(np.frombuffer(digests.shingles, "<i8").astype(np.int64))
    mine = tags(TagKeys(keys.tag_key).shingles, shingle_keys(hashes))
    return Verified(
        shingles=len(wanted),
        held=int(np.isin(wanted, mine).sum()),
        tokens=len(hashes),
        stretches=tuple(_stretches(np.flatnonzero(np.isin(mine, wanted)).tolist())),
    )


def _stretches(places: list[int]) -> list[Stretch]:
    """Return the tokens that shingles at these places cover, in order, joined where they touch."""
    found: list[Stretch] = []
    for at in places:
        end = at + SHINGLE_TOKENS
        if found and at <= found[-1].end:
            found[-1] = Stretch(found[-1].start, end)
        else:
            found.append(Stretch(at, end))
    return found
