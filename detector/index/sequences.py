"""The sequences of the window: hashed tokens, times and owners, by position in order of arrival."""

import sys
from collections.abc import Iterable

import numpy as np
import xxhash
from numpy.typing import NDArray

from detector.model import Kind, Sequence

RequestKey = tuple[str, str, int]

_TIE_BITS = 15
"""What 64 bits leave beside the milliseconds of the year 9999, the last time a record may have."""


def request_key(sequence: Sequence) -> RequestKey:
    """Return what tells one request from another: engines accept repeated request ids."""
    return (sequence.tenant, sequence.request_id, sequence.started_at_ms)


class SequenceStore:
    """The sequences of the window by position, in order of arrival.

    The oldest are released when they have left the window, and their positions are given up later,
    all at once: then every later position shifts down.

    `owners` is party * 2 + is_response; `orders` sorts by start with a tie broken by request, so
    that which of two responses is the source never depends on the order of arrival.
    """

    def __init__(self) -> None:
        self.items: dict[int, Sequence] = {}
        self.owners: NDArray[np.int32] = np.zeros(1024, np.int32)
        self.starts: NDArray[np.int64] = np.zeros(1024, np.int64)
        self.ends: NDArray[np.int64] = np.zeros(1024, np.int64)
        self.orders: NDArray[np.int64] = np.zeros(1024, np.int64)
        self.tokens = 0
        self._count = 0
        self._expired = 0
        self._released = 0
        self._prompts: dict[RequestKey, list[Sequence]] = {}
        self._begin_ms = self._evicted_ms = -sys.maxsize

    def __len__(self) -> int:
        """Return the number of positions, those of released sequences included."""
        return self._count

    @property
    def first_live(self) -> int:
        """The oldest position that still holds a sequence."""
        return self._released

    def add(self, sequence: Sequence, party: int) -> int:
        """Append a sequence and return its position."""
        at = self._count
        self._count += 1
        if at == len(self.owners):
            self._double()
        response = sequence.kind is Kind.RESPONSE
        self.items[at] = sequence
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

    def may_lack_prompt(self, sequence: Sequence) -> bool:
        """Tell whether a response's prompt is not whole here because it may have been evicted.

        That is so where the request began inside the window and no later than the newest sequence
        that was released before it had expired. A prompt that never came looks the same there.
        """
        if sequence.kind is Kind.PROMPT:
            return False
        if not self._begin_ms <= sequence.started_at_ms <= self._evicted_ms:
            return False
        held = self._prompts.get(request_key(sequence))
        return held is None or len({part.part for part in held}) < held[0].parts

    def expired(self, before_ms: int) -> int:
        """Return how many of the oldest sequences started before an instant that only moves on."""
        self._begin_ms = before_ms
        at, end, starts = self._expired, self._count, self.starts
        while at < end and starts.item(at) < before_ms:
            at += 1
        self._expired = at
        return at

    def release(self, gone: int) -> None:
        """Let go of the sequences below `gone`; their positions stay.

        Those that had not `expired` when that was asked last are evicted.
        """
        for at in range(self._released, gone):
            sequence = self.items.pop(at)
            self.tokens -= len(sequence.token_hashes)
            if sequence.kind is Kind.PROMPT:
                self._release_part(sequence)
            if at >= self._expired:
                self._evicted_ms = max(self._evicted_ms, sequence.started_at_ms)
            self._released = at + 1

    def drop(self, count: int) -> None:
        """Give up the oldest `count` positions; every later one shifts down by `count`."""
        self.release(count)
        kept = self._count - count
        for name in ("owners", "starts", "ends", "orders"):
            column = getattr(self, name)
            column[:kept] = column[count : self._count].copy()
        self.items = {at - count: sequence for at, sequence in self.items.items()}
        self._count = kept
        self._expired = max(self._expired - count, 0)
        self._released -= count

    def _release_part(self, prompt: Sequence) -> None:
        """Forget one part of a prompt; a part that came again later is still live."""
        key = request_key(prompt)
        parts = self._prompts[key]
        parts.remove(prompt)
        if not parts:
            del self._prompts[key]

    def _double(self) -> None:
        for name in ("owners", "starts", "ends", "orders"):
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, np.zeros_like(column)]))
