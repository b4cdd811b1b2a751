"""The responses of all pools that share a band with one another, for some ranges of band tags.

Exactly one worker owns a range. What it holds is a function of what it was told, in any order and
any number of times, so a new owner makes it again by reading it once more.
"""

from typing import Final

import numpy as np

from detector.index.response_sketch import ResponseSketch, SketchKey

RESPONSE_BYTES: Final = 6_144
"""What a response takes at most, measured with 21 bands, full samples and names of 40 letters."""

MOST_OF_A_BAND: Final = 64
"""Newest responses of a band that are named: bounds what a stock answer costs that all get."""

_Numbers = tuple[int, ...]


class BandRanges:
    """Sketches by band, of the owned ranges; the oldest go first when they expire or do not fit.

    A sketch is known once, with its bands of every range it came by. `evicted` counts those that
    were given up inside the window for want of memory.
    """

    def __init__(self, *, keep_ms: int, memory_bytes: int) -> None:
        self._keep_ms = keep_ms
        self._most = max(memory_bytes // RESPONSE_BYTES, 1)
        self._ranges: dict[int, dict[int, _Numbers]] = {}
        self._numbers: dict[SketchKey, int] = {}
        self._known: dict[int, ResponseSketch] = {}
        self._bands: dict[int, dict[int, bytes]] = {}
        self._next = 0
        self.now_ms: int | None = None
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._known)

    def knows(self, key: SketchKey) -> bool:
        """True for a response that is held."""
        return key in self._numbers

    def own(self, partition: int) -> None:
        """Begin with a range, empty."""
        self.disown(partition)
        self._ranges[partition] = {}

    def disown(self, partition: int) -> None:
        """Forget the bands of a range."""
        if self._ranges.pop(partition, None) is not None:
            for bands in self._bands.values():
                bands.pop(partition, None)

    def add(self, partition: int, sketch: ResponseSketch) -> bool:
        """Add a sketch with its bands of a range; True where it meets another response there.

        What the range knew already and what has expired is not added and meets nobody. The clock
        is the newest end of any response.
        """
        self.now_ms = max(self.now_ms or sketch.ended_at_ms, sketch.ended_at_ms)
        self._expire()
        number = self._numbers.get(sketch.key)
        known = number is not None and partition in self._bands[number]
        if known or sketch.started_at_ms < self.now_ms - self._keep_ms:
            return False
        if number is None:
            self._make_room()
            number = self._next
            self._next += 1
            self._numbers[sketch.key] = number
            self._known[number] = sketch
            self._bands[number] = {}
        self._bands[number][partition] = sketch.bands
        held = self._ranges[partition]
        meets = False
        for tag in _tags(sketch.bands):
            others = held.get(tag, ())
            meets |= bool(others)
            held[tag] = (*others[1 - MOST_OF_A_BAND :], number)
        return meets

    def near(self, sketch: ResponseSketch) -> list[ResponseSketch]:
        """Return the other responses that share a band of an owned range with one that is held."""
        number = self._numbers.get(sketch.key)
        if number is None:
            return []
        found: dict[int, None] = {}
        for partition, bands in self._bands[number].items():
            for tag in _tags(bands):
                found |= dict.fromkeys(self._ranges[partition].get(tag, ()))
        found.pop(number, None)
        return [self._known[other] for other in found]

    def _expire(self) -> None:
        expired_ms = (self.now_ms or 0) - self._keep_ms
        while self._known:
            oldest = next(iter(self._known))
            if self._known[oldest].started_at_ms >= expired_ms:
                return
            self._forget(oldest)

    def _make_room(self) -> None:
        if len(self._known) >= self._most:
            self._forget(next(iter(self._known)))
            self.evicted += 1

    def _forget(self, number: int) -> None:
        del self._numbers[self._known.pop(number).key]
        for partition, bands in self._bands.pop(number).items():
            held = self._ranges[partition]
            for tag in _tags(bands):
                others = tuple(other for other in held.get(tag, ()) if other != number)
                if others:
                    held[tag] = others
                else:
                    held.pop(tag, None)


def _tags(bands: bytes) -> list[int]:
    return np.frombuffer(bands, "<i8").tolist()  # type: ignore[no-any-return]
