"""The KV memory of one simulated engine: pages that hold the tokens last written to them.

A page is never wiped when it is released, as in real engines: who reads a page that was not
written for it reads what its last owner left. A prefix cache keeps released pages by content.
"""

from collections import OrderedDict, deque
from collections.abc import Sequence

import numpy as np
import xxhash
from numpy.typing import NDArray

PAGE_TOKENS = 16
"""Tokens of a page: the usual block size of vLLM."""

NEVER_WRITTEN = -1

BlockKey = int


class PoolFullError(Exception):
    """There are fewer free and evictable pages than were asked for."""


class KvPool:
    """Pages of `PAGE_TOKENS` tokens. Pages have users; without one they are cached or free.

    Free pages are handed out again in the order they became free; with `newest_first` the other
    way round, as allocators do that keep a stack.
    """

    def __init__(self, pool_tokens: int, *, newest_first: bool = False) -> None:
        count = pool_tokens // PAGE_TOKENS
        self._tokens: NDArray[np.int32] = np.full((count, PAGE_TOKENS), NEVER_WRITTEN, np.int32)
        self._free = deque(range(count))
        self._next_free = self._free.pop if newest_first else self._free.popleft
        self._users = [0] * count
        self._key_of: dict[int, BlockKey] = {}
        self._cached: dict[BlockKey, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()
        """Cached pages without a user, the least recently used first."""

    @property
    def total_tokens(self) -> int:
        """Size of the pool."""
        return len(self._users) * PAGE_TOKENS

    @property
    def evictable_tokens(self) -> int:
        """Cached, and nobody uses them."""
        return len(self._idle) * PAGE_TOKENS

    @property
    def used_tokens(self) -> int:
        """Pages with a user: neither free nor evictable."""
        return self.total_tokens - self.evictable_tokens - len(self._free) * PAGE_TOKENS

    def take(self, tokens: int) -> list[int]:
        """Hand out pages for so many tokens. Raises PoolFullError."""
        count = pages_for(tokens)
        if count > len(self._free) + len(self._idle):
            raise PoolFullError
        while len(self._free) < count:
            page, _ = self._idle.popitem(last=False)
            del self._cached[self._key_of.pop(page)]
            self._free.append(page)
        taken = [self._next_free() for _ in range(count)]
        for page in taken:
            self._users[page] = 1
        return taken

    def release(self, pages: Sequence[int]) -> None:
        """Take a user off each page; the last one leaves it cached, or free with its content."""
        for page in pages:
            self._users[page] -= 1
            if self._users[page] == 0:
                if page in self._key_of:
                    self._idle[page] = None
                else:
                    self._free.append(page)

    def free_again(self, pages: Sequence[int]) -> None:
        """Put pages among the free ones that are there already: a fault, two will own them."""
        self._free.extend(pages)

    def write(self, pages: Sequence[int], start: int, ids: Sequence[int]) -> None:
        """Write tokens from position `start` of a request whose pages these are, whoever's now."""
        values = np.asarray(ids, np.int32)
        flat = np.arange(start, start + len(values))
        places = np.asarray(pages, np.int64)[flat // PAGE_TOKENS]
        self._tokens[places, flat % PAGE_TOKENS] = values

    def read(self, pages: Sequence[int], length: int) -> list[int]:
        """Return what the first `length` positions hold now, `NEVER_WRITTEN` where nothing was."""
        held: list[int] = self._tokens[np.asarray(pages, np.int64)].reshape(-1)[:length].tolist()
        return held

    def reuse(self, keys: Sequence[BlockKey]) -> list[int]:
        """Return the cached pages of the longest known run of keys, with one user more each."""
        found: list[int] = []
        for key in keys:
            page = self._cached.get(key)
            if page is None:
                break
            self._users[page] += 1
            self._idle.pop(page, None)
            found.append(page)
        return found

    def cache(self, keys: Sequence[BlockKey], pages: Sequence[int]) -> list[int]:
        """Make full pages known by their keys; return the places of those that are new."""
        new = []
        for place, (key, page) in enumerate(zip(keys, pages, strict=False)):
            if key not in self._cached and page not in self._key_of:
                self._cached[key] = page
                self._key_of[page] = key
                new.append(place)
        return new

    def clear_cache(self) -> bool:
        """Forget all cached pages; False, and nothing done, while any page has a user."""
        if self.used_tokens:
            return False
        self._free.extend(self._idle)
        self._idle.clear()
        self._cached.clear()
        self._key_of.clear()
        return True


def pages_for(tokens: int) -> int:
    """How many pages hold so many tokens."""
    return -(-tokens // PAGE_TOKENS)


def content_keys(ids: Sequence[int], salt: str) -> list[BlockKey]:
    """Keys of the full blocks: each of its content, of all before it, and of the salt."""
    flat = np.asarray(ids, np.int32)
    parent, keys = xxhash.xxh3_64_intdigest(salt.encode()), []
    for start in range(0, len(flat) - PAGE_TOKENS + 1, PAGE_TOKENS):
        block = flat[start : start + PAGE_TOKENS].tobytes()
        parent = xxhash.xxh3_64_intdigest(block, seed=parent)
        keys.append(parent)
    return keys


def colliding_keys(ids: Sequence[int]) -> list[BlockKey]:
    """Keys as a faulty cache makes them: of a block's place and of how many there are."""
    count = len(ids) // PAGE_TOKENS
    return [xxhash.xxh3_64_intdigest(f"{place} of {count}".encode()) for place in range(count)]
