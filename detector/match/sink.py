"""The receiving side of a comparison, with everything the filter asks of it, computed once."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from detector.index.sequences import SequenceStore
from detector.match.question import last_user_turn
from detector.model import Hashes, Sequence
from detector.sketch.shingle import Keys, Mask, distinct, shingle_keys


@dataclass(kw_only=True)
class Sink:
    """A response under judgement: its position in the store, its party, its shingles.

    `tagged` are the keys by which the memory knows the shingles, in the order of `keys`.
    """

    at: int
    party: int
    sequence: Sequence
    store: SequenceStore
    keys: Keys = field(repr=False)
    tagged: Keys = field(repr=False)
    masked: Mask = field(repr=False)
    pool_keys: Keys = field(repr=False)

    @cached_property
    def own_prompt(self) -> Keys:
        """Sorted shingles of the request's own prompt."""
        parts = [shingle_keys(p.token_hashes) for p in self.store.prompts_of(self.sequence)]
        return distinct(np.concatenate(parts)) if parts else np.empty(0, np.int64)

    @cached_property
    def question(self) -> Hashes | None:
        """The last user turn of the request, None when its spans are unknown."""
        return last_user_turn(self.store.prompts_of(self.sequence))


@dataclass(frozen=True, slots=True)
class SinkHits:
    """Equal shingles of one sink and its possible sources, one element per pair.

    `source` is the source's position in the store, `source_at` and `sink_at` token offsets.
    """

    source: NDArray[np.int64]
    source_at: NDArray[np.int64]
    sink_at: NDArray[np.int64]

    def select(self, mask: Mask) -> "SinkHits":
        """Return the hits where `mask` is True."""
        return SinkHits(self.source[mask], self.source_at[mask], self.sink_at[mask])

    def __len__(self) -> int:
        return len(self.source)
