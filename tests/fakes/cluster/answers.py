"""The simulated language model: natural text, and quotes of whatever the request attends to.

It is as simple as a model can be whose answers depend on KV content: it goes on in fresh text and
quotes stretches of what lies in the pages of its request. If those are somebody else's, his text
surfaces; no fault puts it there by hand.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile
from random import Random

import xxhash

from detector.sample.tokenizer import IM_END, IM_START

OWN_TOKENS = (16, 48)
QUOTE_TOKENS = (20, 36)
QUOTE_CHANCE = 0.5
"""Pieces of an answer, and how often a quote follows its own text; chosen to look like support."""

_MARKERS = frozenset({IM_START, IM_END})

Attend = Callable[[], Sequence[int]]
"""Reads what the request's pages hold at this moment."""


class Answer:
    """One answer while it is made: its own text piece by piece, and quotes in between.

    The same own text, seed and attended content make the same answer.
    """

    def __init__(self, own: Sequence[int], *, seed: str) -> None:
        self._own = own
        self._at = 0
        self._rng = Random(xxhash.xxh3_64_intdigest(seed.encode()))

    @property
    def is_done(self) -> bool:
        """True once all its own text is said."""
        return self._at >= len(self._own)

    def piece(self, attend: Attend) -> list[int]:
        """Return the next tokens."""
        rng = self._rng
        end = self._at + rng.randint(*OWN_TOKENS)
        made = list(self._own[self._at : end])
        self._at = end
        if rng.random() < QUOTE_CHANCE:
            made += self._quote([number for number in attend() if number >= 0])
        return made

    def _quote(self, held: list[int]) -> list[int]:
        """Return a stretch of what is held, up to where its message ends."""
        length = self._rng.randint(*QUOTE_TOKENS)
        start = self._rng.randrange(max(1, len(held) - length + 1))
        return list(takewhile(lambda number: number not in _MARKERS, held[start : start + length]))
