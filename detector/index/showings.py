"""What workers tell each other: who has shown which shingles when, and which ones are tainted."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detector.sketch.shingle import Keys

Marks = NDArray[np.int64]

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


class Showings(NamedTuple):
    """Shingle tags, each with the mark of a party that has shown it and when."""

    tags: Keys
    marks: Marks


class Taint(NamedTuple):
    """Shingle tags that one party received from another unexplained, and since when.

    `since_ms` is the start of the response that received them, `at_ms` when that was found.
    """

    tags: Keys
    origin: int
    receiver: int
    since_ms: int
    at_ms: int


NO_SHOWINGS = Showings(np.empty(0, np.int64), np.empty(0, np.int64))


def joined(parts: list[Showings]) -> Showings:
    """Return many showings as one."""
    if not parts:
        return NO_SHOWINGS
    return Showings(
        np.concatenate([part.tags for part in parts]),
        np.concatenate([part.marks for part in parts]),
    )


def ranges_of(tags: Keys, count: int) -> NDArray[np.int64]:
    """Return which of `count` equal ranges each tag falls into, by its low half.

    Tables address by the high half: cut by that, a range's rows would crowd in one corner.
    """
    return (((tags.view(np.uint64) & _LOW) * np.uint64(count)) >> _HALF).astype(np.int64)


def by_range(shown: Showings, count: int) -> Iterator[tuple[int, Showings]]:
    """Yield every range that has some with its showings, in the order in which they came."""
    ranges = ranges_of(shown.tags, count).astype(np.uint16)
    order = np.argsort(ranges, kind="stable")
    tags, marks = shown.tags[order], shown.marks[order]
    begin = 0
    for number, size in enumerate(np.bincount(ranges, minlength=count).tolist()):
        if size:
            yield number, Showings(tags[begin : begin + size], marks[begin : begin + size])
        begin += size
