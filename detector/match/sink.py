"""The receiving side of a comparison, with everything the filter asks of it, computed once."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from detector.index.memory import Memory
from detector.index.postings import Positions
from detector.index.selection import Sampling
from detector.index.sequences import SequenceStore
from detector.kernels.between import spread
from detector.match.question import last_user_turn
from detector.match.reasons import UNEXPLAINED
from detector.model import Hashes, Sequence
from detector.sketch.shingle import Keys, Mask, distinct, shingle_keys


@dataclass(kw_only=True)
class Sink:
    """A response under judgement: its position in the store, its party, its shingles.

    Its keys are filed in the index under the `salt` of its pool, combined by exclusive or;
    `sampling` says which shingles index and memory know.
    """

    at: int
    party: int
    sequence: Sequence
    keys: Keys
    masked: Mask
    store: SequenceStore = field(repr=False)
    memory: Memory = field(repr=False)
    salt: np.int64
    sampling: Sampling

    @cached_property
    def remembered(self) -> Mask:
        """True for the shingles that the memory may know."""
        return self.sampling.remembered(self.keys, self.masked)

    @cached_property
    def tagged(self) -> Keys:
        """The keys by which the memory knows the shingles."""
        return self.memory.tagged(self.keys)

    def common(self, indexed: Positions) -> Mask:
        """Return which shingles everybody shows: those picked that are not among the indexed."""
        picked = self.sampling.picked(self.keys, self.masked)
        codes = picked.astype(np.uint8)
        codes[indexed] = UNEXPLAINED
        common: Mask = spread(codes, picked).astype(np.bool_) & ~self.masked
        return common

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
