"""Whose turn it is: everything is disturbed before anything is disturbed again."""

from collections.abc import Iterable
from random import Random


class Turns:
    """Gives one name after the other, in an order by chance within each round.

    Those of `once` come first, and never again: what is spared lives for the rest of the run.
    """

    def __init__(self, names: Iterable[str], *, once: Iterable[str], rng: Random) -> None:
        self._rng = rng
        first = set(once)
        self._names = [name for name in names if name not in first]
        self._left = self._shuffled(self._names) + self._shuffled(first)

    def next(self) -> str:
        """Return the next name."""
        if not self._left:
            self._left = self._shuffled(self._names)
        return self._left.pop()

    def _shuffled(self, names: Iterable[str]) -> list[str]:
        made = sorted(names)
        self._rng.shuffle(made)
        return made
