"""Prompts of random tokens: canaries that tenant A plants and that B's answers must not hold."""

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

FIRST_ID: Final = 1_000
END_ID: Final = 3_000
"""Ids that are ordinary text in every vocabulary of 4,096 or more: some families keep their first
thousand for control tokens, all keep markers at the end."""

CANARY_TOKENS: Final = 32
"""Length of a canary. A prompt of A repeats one, so that what reads its memory goes on in it."""

RUN_TOKENS: Final = 6
"""Consecutive tokens of a canary that are no chance: one in 2,000^6 for each place."""

OTHER_TOKENS: Final = 4_096
"""Of a prompt without canaries that are drawn: a million of them would take seconds."""


class Echo(NamedTuple):
    """Where an answer repeats a canary: offset and length in tokens, and which canary it was."""

    start: int
    length: int
    canary: int


class Canaries:
    """Makes random prompts. What it plants is remembered, compared and never shown."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._places: dict[tuple[int, ...], int] = {}
        self.planted = 0

    def plant(self, length: int) -> list[int]:
        """Return a prompt of A: a canary of its own, over and over."""
        canary = self._rng.sample(range(FIRST_ID, END_ID), CANARY_TOKENS)
        prompt = (canary * (length // CANARY_TOKENS + 1))[:length]
        for start in range(CANARY_TOKENS):
            run = (canary + canary)[start : start + RUN_TOKENS]
            self._places[tuple(run)] = self.planted
        self.planted += 1
        return prompt

    def other(self, length: int) -> list[int]:
        """Return a prompt that holds nothing of anybody; a long one repeats itself."""
        part = self._rng.choices(range(FIRST_ID, END_ID), k=min(length, OTHER_TOKENS))
        return (part * (length // len(part) + 1))[:length]

    def echoes(self, ids: Sequence[int]) -> list[Echo]:
        """Return where an answer holds canaries, in its order."""
        found: list[Echo] = []
        for start in range(len(ids) - RUN_TOKENS + 1):
            canary = self._places.get(tuple(ids[start : start + RUN_TOKENS]))
            if canary is None:
                continue
            last = found[-1] if found else None
            if last is not None and last.canary == canary and start <= last.start + last.length:
                found[-1] = last._replace(length=start + RUN_TOKENS - last.start)
            else:
                found.append(Echo(start, RUN_TOKENS, canary))
        return found
