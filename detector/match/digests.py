"""Keyed digests of the shingles that a finding rests on: what may be kept of them.

Whoever has the deployment's secret can tell whether a text holds such a shingle; nobody else can.
"""

from collections.abc import Callable
from functools import partial

from detector.finding import MOST_DIGESTS, Digests
from detector.sketch.shingle import Keys
from detector.sketch.siphash import tags
from detector.sketch.tag_keys import TagKeys

Tagger = Callable[[bytes], Callable[[Keys], Keys]]
"""Returns what makes SipHash tags under a key."""


def plain(key: bytes) -> Callable[[Keys], Keys]:
    """Return the tagger in numpy: a tenth of a millisecond for each call, whatever its size."""
    return partial(tags, key)


class Digester:
    """Makes digests under the keys of one secret; `key_id` names it.

    `tagger` is `plain`, or a compiled one where digests are looked up for every response.
    """

    def __init__(self, tag_key: bytes, *, key_id: str, tagger: Tagger = plain) -> None:
        self.key_id = key_id
        self._tags = tagger(TagKeys(tag_key).shingles)

    def tags(self, keys: Keys) -> Keys:
        """Return the digest of every shingle."""
        return self._tags(keys)

    def of(self, keys: Keys, *, are_tags: bool, key_id: str) -> Digests | None:
        """Return the digests of shingles that were hashed under the key `key_id`.

        `are_tags` says that they are digests already, as in a memory that workers share. None under
        another key than ours: one key must be enough to compare them.
        """
        if key_id != self.key_id:
            return None
        made = keys if are_tags else self.tags(keys)
        return Digests(key=key_id, shingles=made[:MOST_DIGESTS].astype("<i8").tobytes())
