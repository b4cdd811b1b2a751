"""LSH over the window: which live documents have a sketch that shares a band with this one."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detector.errors import UsageError
from detector.kernels import bands as kernel
from detector.model import Hashes
from detector.sketch.header import SketchHeader
from detector.sketch.lsh import BandShape
from detector.sketch.minhash import Sketches, permutations

LOAD_LIMIT = 0.6
"""Used share of the table at most. With 16 bytes a row a band key takes 27 bytes when full."""

_FIRST_DOCUMENTS = 256

_NOBODY: NDArray[np.int64] = np.empty(0, np.int64)
_NOBODY.flags.writeable = False

_EXACT = 1e-9
"""A share of values is a whole number of them but for rounding."""

Numbers = NDArray[np.int64]


class Similar(NamedTuple):
    """Candidates, ascending, and the Jaccard similarity that the sketches estimate for each."""

    numbers: Numbers
    similarity: NDArray[np.float64]


class BandIndex:
    """Sketches of the window with their event time, numbered 0, 1, 2 ... in order of insertion.

    Candidates are exactly those of datasketch's MinHashLSH with the same shape over the live
    documents. `capped` counts queries that stopped at `most_candidates`.
    """

    def __init__(
        self, header: SketchHeader, shape: BandShape, *, most_candidates: int = 1 << 20
    ) -> None:
        if shape.bands * shape.rows > header.num_perm:
            raise UsageError(
                f"{shape.bands} bands of {shape.rows} rows need more than {header.num_perm} values"
            )
        self._header = header
        self._shape = shape
        self._permutations = permutations(header)
        self._most = most_candidates
        self._oldest = 0
        self._next = 0
        self._since_ms = np.iinfo(np.int64).min
        self._rows = 0
        self._make_table(_FIRST_DOCUMENTS * shape.bands)
        self._make_slots(_FIRST_DOCUMENTS)
        self.capped = 0

    def __len__(self) -> int:
        return self._next - self._oldest

    @property
    def nbytes(self) -> int:
        """Bytes of the table, the chains and the sketches."""
        arrays = (self._table, self._links, self._times, self._values, self._seen, self._found)
        return sum(array.nbytes for array in arrays)

    def insert(self, sketches: Sketches, times_ms: NDArray[np.int64]) -> int:
        """Add sketches with the event time of each; return the number of the first.

        Raises SketchError for sketches of another header.
        """
        self._header.require_same(sketches.header)
        first = self._next
        self._make_room(len(sketches.values))
        slots = np.arange(first, first + len(sketches.values)) % len(self._times)
        self._times[slots] = times_ms
        self._values[slots] = sketches.values
        keys = kernel.band_keys(sketches.values, self._shape.bands, self._shape.rows)
        self._rows += kernel.insert(
            self._table, self._homes, self._links, keys, first, self._oldest
        )
        self._next += len(keys)
        return first

    def candidates(self, sketch: Sketches) -> Numbers:
        """Return the numbers of live documents that share a band with one sketch, ascending.

        Raises SketchError for a sketch of another header.
        """
        self._header.require_same(sketch.header)
        keys = kernel.band_keys(sketch.values[:1], self._shape.bands, self._shape.rows)
        written = kernel.query(
            self._table, self._homes, self._links, self._times, keys[0],
            self._oldest, self._since_ms, self._most, self._seen, self._found,
        )  # fmt: skip
        self.capped += written < 0
        return np.sort(self._found[: abs(written)])

    def similar(self, sketch: Sketches, *, at_least: float) -> Similar:
        """Return the candidates whose estimated Jaccard similarity is at least that."""
        numbers = self.candidates(sketch)
        values = self._values[numbers % len(self._times)]
        similarity = np.mean(values == sketch.values[0], axis=1)
        near = similarity >= at_least
        return Similar(numbers[near], similarity[near])

    def meet(self, tokens: Hashes, salt: np.uint32, time_ms: int, *, at_least: float) -> Numbers:
        """Do `similar` and then `insert` for one text, ten times as fast; return the numbers.

        Its sketch is that of its sampled bigrams, their hashes combined with `salt`.
        """
        self._make_room(1)
        written, added = kernel.meet(
            self._table, self._homes, self._links, self._times, self._values, self._seen,
            self._found, tokens, salt, *self._permutations, self._shape.bands, self._shape.rows,
            self._next, time_ms, self._oldest, self._since_ms, self._most,
            math.ceil(at_least * self._header.num_perm - _EXACT),
        )  # fmt: skip
        self._rows += added
        self._next += 1
        if written < 0:
            self.capped += 1
            written = -1 - written
        return np.sort(self._found[:written]) if written else _NOBODY

    def forget(self, documents: int) -> int:
        """Give up that many of the oldest documents, or all; return how many."""
        gone = min(documents, len(self))
        self._oldest += gone
        return gone

    @property
    def oldest(self) -> int:
        """The number of the oldest document that is kept."""
        return self._oldest

    def expire(self, before_ms: int) -> int:
        """Forget the documents older than an instant of event time, which only moves on.

        Returns how many those at the old end were.
        Memory of a document comes free once all before it are forgotten too.
        """
        self._since_ms = before_ms
        times, first, end = self._times, self._oldest, self._next
        oldest = first
        while oldest < end and times.item(oldest % len(times)) < before_ms:
            oldest += 1
        self._oldest = oldest
        return oldest - first

    def _make_room(self, documents: int) -> None:
        if self._next - self._oldest + documents > len(self._times):
            self._grow_slots(documents)
        keys = documents * self._shape.bands
        if self._rows + keys > self._homes * LOAD_LIMIT:
            old = self._table
            live = len(self) * self._shape.bands
            self._make_table(2 * (live + keys))
            self._rows = int(kernel.rebuild(old, self._table, self._homes, self._oldest))

    def _make_table(self, keys: int) -> None:
        self._homes = int(keys / LOAD_LIMIT) + 1
        self._table = np.zeros((self._homes + kernel.PADDING_ROWS, 2), np.int64)

    def _make_slots(self, documents: int) -> None:
        self._links = np.full((documents, self._shape.bands), -1, np.int64)
        self._times = np.zeros(documents, np.int64)
        self._values = np.zeros((documents, self._header.num_perm), np.uint32)
        self._seen = np.zeros(documents + 1, np.int64)
        self._found = np.zeros(documents, np.int64)

    def _grow_slots(self, documents: int) -> None:
        live = np.arange(self._oldest, self._next)
        links, times, values = self._links, self._times, self._values
        before = live % len(times)
        self._make_slots(2 * (len(self) + documents))
        after = live % len(self._times)
        self._links[after] = links[before]
        self._times[after] = times[before]
        self._values[after] = values[before]
