"""The responses of all pools that share a band with one another, for some ranges of band tags.

Exactly one worker owns a range. What it holds is a function of what it was told, in any order and
any number of times, so a new owner makes it again by reading it once more.
"""

from collections import defaultdict
from typing import Final

from detector.index.response_sketch import ResponseSketch, SketchKey

RESPONSE_BYTES: Final = 4_096
"""What a response takes at most: measured 3.3 KB with 21 bands and full samples."""

MOST_OF_A_BAND: Final = 64
"""Newest responses of a band that are compared: bounds what a stock answer costs that all get."""


class BandRanges:
    """Sketches by band, of the owned ranges; the oldest go first when they expire or do not fit.

    A sketch is known once, with its bands of every range it came by. `evicted` counts those that
    were given up inside the window for want of memory.
    """

    def __init__(self, *, keep_ms: int, memory_bytes: int) -> None:
        self._keep_ms = keep_ms
        self._most = max(memory_bytes // RESPONSE_BYTES, 1)
        self._ranges: dict[int, defaultdict[int, list[SketchKey]]] = {}
        self._known: dict[SketchKey, ResponseSketch] = {}
        self._bands: dict[SketchKey, dict[int, list[int]]] = {}
        self.now_ms: int | None = None
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._known)

    def knows(self, key: SketchKey) -> bool:
        """True for a response that is held."""
        return key in self._known

    @property
    def owned(self) -> frozenset[int]:
        """The ranges."""
        return frozenset(self._ranges)

    def own(self, partition: int) -> None:
        """Begin with a range, empty."""
        self._ranges[partition] = defaultdict(list)

    def disown(self, partition: int) -> None:
        """Forget the bands of a range."""
        if self._ranges.pop(partition, None) is not None:
            for bands in self._bands.values():
                bands.pop(partition, None)

    def add(self, partition: int, sketch: ResponseSketch) -> bool:
        """Add a sketch with its bands of a range; False where the range knew it already.

        Nothing is added that has expired. The clock is the newest end of any response.
        """
        self.now_ms = max(self.now_ms or sketch.ended_at_ms, sketch.ended_at_ms)
        self._expire()
        bands = self._bands.get(sketch.key, {})
        if partition in bands or sketch.started_at_ms < self.now_ms - self._keep_ms:
            return False
        tags = sketch.band_tags().tolist()
        self._known.setdefault(sketch.key, sketch)
        self._bands.setdefault(sketch.key, {})[partition] = tags
        for tag in tags:
            self._ranges[partition][tag].append(sketch.key)
        return True

    def near(self, sketch: ResponseSketch) -> list[ResponseSketch]:
        """Return the other responses that share a band of an owned range with one."""
        found: dict[SketchKey, None] = {}
        for partition, tags in self._bands.get(sketch.key, {}).items():
            for tag in tags:
                found |= dict.fromkeys(self._ranges[partition][tag][-MOST_OF_A_BAND:])
        found.pop(sketch.key, None)
        return [self._known[key] for key in found]

    def _expire(self) -> None:
        expired_ms = (self.now_ms or 0) - self._keep_ms
        while self._known:
            oldest = next(iter(self._known))
            if self._known[oldest].started_at_ms >= expired_ms:
                if len(self._known) < self._most:
                    return
                self.evicted += 1
            self._forget(oldest)

    def _forget(self, key: SketchKey) -> None:
        del self._known[key]
        for partition, tags in self._bands.pop(key).items():
            for tag in tags:
                holders = self._ranges[partition][tag]
                holders.remove(key)
                if not holders:
                    del self._ranges[partition][tag]
