"""The sequences of the window: hashed tokens, times and owners, by position in order of arrival."""

from collections.abc import Iterable

import numpy as np
import xxhash
from numpy.typing import NDArray

from detector.model import Kind, Sequence

RequestKey = tuple[str, str, int]

_TIE_BITS = 20


def request_key(sequence: Sequence) -> RequestKey:
    """Return what tells one request from another: engines accept repeated request ids."""
    return (sequence.tenant, sequence.request_id, sequence.started_at_ms)


class SequenceStore:
    """Live sequences, oldest first. Positions shift down when the oldest are dropped.

    `owners` is party * 2 + is_response; `orders` sorts by start with a tie broken by request, so
    that which of two responses is the source never depends on the order of arrival.
    """

    def __init__(self) -> None:
        self.items: list[Sequence] = []
        self.owners: NDArray[np.int32] = np.zeros(1024, np.int32)
        self.starts: NDArray[np.int64] = np.zeros(1024, np.int64)
        self.ends: NDArray[np.int64] = np.zeros(1024, np.int64)
        self.orders: NDArray[np.int64] = np.zeros(1024, np.int64)
        self.tokens = 0
        self._expired = 0
        self._prompts: dict[RequestKey, list[Sequence]] = {}

    def __len__(self) -> int:
        return len(self.items)

    def add(self, sequence: Sequence, party: int) -> int:
        """Append a sequence and return its position."""
        at = len(self.items)
        if at == len(self.owners):
            self._double()
        response = sequence.kind is Kind.RESPONSE
        self.items.append(sequence)
        self.owners[at] = party * 2 + response
        self.starts[at] = sequence.started_at_ms
        self.ends[at] = sequence.ended_at_ms
        tie = xxhash.xxh3_64_intdigest(f"{sequence.tenant}\0{sequence.request_id}".encode())
        self.orders[at] = sequence.started_at_ms << _TIE_BITS | tie & ((1 << _TIE_BITS) - 1)
        self.tokens += len(sequence.token_hashes)
        if not response:
            self._prompts.setdefault(request_key(sequence), []).append(sequence)
        return at

    def prompts_of(self, sequence: Sequence) -> Iterable[Sequence]:
        """Return the prompt parts of the request that a sequence belongs to, if still live."""
        return self._prompts.get(request_key(sequence), ())

    def expired(self, before_ms: int) -> int:
        """Return how many of the oldest sequences started before an instant that only moves on."""
        for at in range(self._expired, len(self.items)):
            if self.starts[at] >= before_ms:
                self._expired = at
                return at
        self._expired = len(self.items)
        return self._expired

    def drop(self, count: int) -> None:
        """Forget the oldest `count` sequences; every later position shifts down by `count`."""
        if not count:
            return
        self._expired = max(self._expired - count, 0)
        for sequence in self.items[:count]:
            self.tokens -= len(sequence.token_hashes)
            if sequence.kind is Kind.PROMPT:
                self._prompts.pop(request_key(sequence), None)
        del self.items[:count]
        for name in ("owners", "starts", "ends", "orders"):
            column = getattr(self, name)
            column[: len(self.items)] = column[count : count + len(self.items)].copy()

    def _double(self) -> None:
        for name in ("owners", "starts", "ends", "orders"):
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, np.zeros_like(column)]))
