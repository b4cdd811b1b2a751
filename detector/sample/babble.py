"""Endless natural-looking token text: a walk over a corpus that jumps where the words agree.

Every stretch copied from the corpus is short, so two walks share ten tokens in a row about as
rarely as two unrelated human texts do; common phrases are shared as often as in the corpus.
"""

from collections.abc import Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

STRETCH = (1, 3)
"""Tokens copied between two jumps, inclusive bounds."""

LONG_STRETCH_CHANCE = 0.0005
LONG_STRETCH = (9, 13)
"""Rarely a longer piece is copied: the chance overlap that real traffic shows."""

LOOSE_CHANCE = 0.4
"""Jumps that look at the last token only: less grammar, and less repeated word for word."""

TRIES = 4
"""Places looked at for one where the text goes on differently."""

PATIENCE = 20
"""Tokens a sentence may run over the asked length until it ends at a stop."""

_PAIR = 1 << 18  # more than any id, so that a pair of ids is one integer


class Babbler:
    """Walks over one corpus given as token sequences; `stops` are ids that may end a text."""

    def __init__(self, texts: Sequence[Sequence[int]], *, stops: frozenset[int]) -> None:
        self._stops = stops
        self._ids: list[int] = []
        for text in texts:
            self._ids.extend(text)
        ends = (place for place, number in enumerate(self._ids[:-1]) if number in stops)
        self._starts = [place + 1 for place in ends if self._ids[place + 1] not in stops]
        before, last = self._ids[:-1], np.asarray(self._ids[1:-1], dtype=np.int64)
        self._after_one = _places(np.asarray(before, dtype=np.int64), 1)
        self._after_two = _places(np.asarray(before[:-1], dtype=np.int64) * _PAIR + last, 2)

    def write(self, rng: Random, length: int) -> list[int]:
        """About `length` tokens: at least that many, and up to `PATIENCE` more to reach a stop."""
        ids = self._ids
        place = self._sentence(rng)
        out = [ids[place]]
        budget = self._stretch(rng)
        while len(out) < length + PATIENCE:
            if len(out) >= length and out[-1] in self._stops:
                break
            if budget <= 0 or place + 1 >= len(ids):
                place = self._jump(rng, out, place)
                budget = self._stretch(rng)
            else:
                place += 1
                budget -= 1
            out.append(ids[place])
        return out

    def _jump(self, rng: Random, out: list[int], place: int) -> int:
        """Where the corpus goes on differently after the last two tokens, or after the last one."""
        ids = self._ids
        usual = ids[(place + 1) % len(ids)]
        tight = len(out) > 1 and rng.random() >= LOOSE_CHANCE
        pairs = self._after_two.get(out[-2] * _PAIR + out[-1], ()) if tight else ()
        for places in (pairs, self._after_one.get(out[-1], ())):
            for _ in range(TRIES if len(places) > 1 else 0):
                choice = places[int(rng.random() * len(places))]
                if ids[choice] != usual:
                    return choice
        return self._sentence(rng)

    def _sentence(self, rng: Random) -> int:
        """Return the start of some sentence."""
        return self._starts[int(rng.random() * len(self._starts))]

    @staticmethod
    def _stretch(rng: Random) -> int:
        long = rng.random() < LONG_STRETCH_CHANCE
        low, high = LONG_STRETCH if long else STRETCH
        return low + int(rng.random() * (high - low + 1))


def _places(keys: NDArray[np.int64], offset: int) -> dict[int, list[int]]:
    """By key, the places `offset` tokens after its occurrences: where the corpus goes on."""
    order = np.argsort(keys, kind="stable")
    values, firsts = np.unique(keys[order], return_index=True)
    places = (order + offset).tolist()
    bounds = [*firsts.tolist(), len(places)]
    return {
        key: places[bounds[rank] : bounds[rank + 1]] for rank, key in enumerate(values.tolist())
    }
