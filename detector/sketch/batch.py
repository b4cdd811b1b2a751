"""Many sequences as one flat array with offsets, and the fingerprints picked from them."""

from collections.abc import Iterator
from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detector.model import Hashes
from detector.sketch.shingle import SHINGLE_TOKENS, Keys, Mask

Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Sequence i is tokens[offsets[i]:offsets[i+1]].

    `tokens` are uint32 token hashes; with a `table` they are token ids, and table[id] is the hash
    of an id. Every id must lie inside the table (`TokenTable` proves it); nothing checks it here.
    """

    tokens: NDArray[np.uint32]
    offsets: Offsets
    table: Hashes | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The picked shingles of sequence i are elements offsets[i] up to offsets[i+1].

    `keys` are shingle keys, `positions` the offset of each in the tokens of its sequence,
    ascending.
    """

    keys: Keys
    positions: NDArray[np.int32]
    offsets: Offsets


class Prepared(NamedTuple):
    """The shingles of one sequence: their keys, those of low complexity, the sample to index.

    `picked` is None where every shingle is indexed. Arrays have shape (max(n - 9, 0),).
    """

    keys: Keys
    masked: Mask
    picked: Mask | None


@dataclass(frozen=True, slots=True)
class Shingles:
    """Every shingle of a batch: that from token i of sequence s on is element offsets[s] + i.

    The last 9 elements of a sequence begin no shingle and mean nothing.
    """

    keys: Keys
    masked: Mask
    picked: Mask | None
    offsets: Offsets

    def of(self, number: int) -> Prepared:
        """Return views of one sequence's shingles."""
        begin = self.offsets[number]
        end = max(self.offsets[number + 1] - (SHINGLE_TOKENS - 1), begin)
        picked = None if self.picked is None else self.picked[begin:end]
        return Prepared(self.keys[begin:end], self.masked[begin:end], picked)


def flatten(sequences: Many[NDArray[np.uint32]], table: Hashes | None = None) -> TokenBatch:
    """Lay sequences end to end."""
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    tokens = np.concatenate(sequences) if len(sequences) else np.empty(0, np.uint32)
    return TokenBatch(tokens, offsets_of(lengths), table)


def offsets_of(lengths: NDArray[np.int64]) -> Offsets:
    """Return where each of the lengths begins, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def chunks(offsets: Offsets, tokens: int) -> Iterator[Offsets]:
    """Cut into pieces of whole sequences, of at most `tokens` tokens or one sequence each.

    Yields the offsets of each piece, from the start of its first sequence to the end of its last.
    """
    begin, total = 0, len(offsets) - 1
    while begin < total:
        end = int(np.searchsorted(offsets, offsets[begin] + tokens, side="right")) - 1
        end = min(max(end, begin + 1), total)
        yield offsets[begin : end + 1]
        begin = end


def joined(parts: Many[Fingerprints]) -> Fingerprints:
    """Lay the fingerprints of consecutive pieces of a batch end to end."""
    if not parts:
        return Fingerprints(np.empty(0, np.int64), np.empty(0, np.int32), np.zeros(1, np.int64))
    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    return Fingerprints(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.positions for part in parts]),
        offsets_of(counts),
    )
