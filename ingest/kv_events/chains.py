"""Puts the tokens of stored blocks together again: prompts and responses, as hashes.

Events name no request. Blocks that are stored behind the last block of one party's chain belong to
the same request; what is stored first is its prompt. An engine stores a response as it grows: vLLM
block by block, SGLang in one piece. Of a response's first block some tokens may still be the
prompt's, so these are in both.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from detector.model import Hashes, Kind
from ingest.kv_events.decode import BlockHash, Stored
from ingest.kv_events.owners import Party
from ingest.limits import MAX_SIDE_TOKENS

LONG_STORE_TOKENS: Final = 1024
"""Stored at once behind a chain, so many tokens are the next piece of a long prompt: engines cut
prompts into pieces of 2,048 tokens and more, and few responses are as long."""

MAX_CHAINS: Final = 4096
"""Requests that are put together at once; engines run at most some hundreds."""

MAX_HELD_TOKENS: Final = 2_000_000
"""Tokens held for them, 4 bytes each; the request that has waited longest is ended first."""


class Side(NamedTuple):
    """A prompt or a response of a request that has ended, as far as its blocks were full."""

    kind: Kind
    party: Party
    first_block: BlockHash
    rank: int
    started_ms: int
    ended_ms: int
    hashes: Hashes


@dataclass(slots=True)
class _Chain:
    party: Party
    rank: int
    first_block: BlockHash
    started_ms: int
    latest_ms: int
    prompt: list[Hashes] = field(default_factory=list)
    response: list[Hashes] = field(default_factory=list)
    tokens: int = 0


_Key = tuple[int, int, str, BlockHash]


class Chains:
    """Requests that are being put together, by the last block of each. For one publisher."""

    def __init__(self, idle_ms: int) -> None:
        self._idle_ms = idle_ms
        self._chains: OrderedDict[_Key, _Chain] = OrderedDict()
        self._tokens = 0

    def store(
        self, stored: Stored, hashes: Hashes, *, party: Party, rank: int, at_ms: int
    ) -> Iterator[Side]:
        """Add new blocks and their hashed tokens; yield what has ended by that."""
        if not stored.blocks or not len(hashes):
            return
        chain = None
        if stored.parent is not None:
            before = (rank, stored.group, stored.medium, stored.parent)
            chain = self._chains.get(before)
            if chain is not None and chain.party == party:
                del self._chains[before]
                if _is_next_turn(chain, stored, hashes):
                    yield from self._end(chain)
                    chain = None
            else:
                chain = None
        if chain is None:
            chain = _Chain(party, rank, stored.blocks[0], at_ms, at_ms)
        self._add(chain, stored, hashes, at_ms)
        self._chains[rank, stored.group, stored.medium, stored.blocks[-1]] = chain
        while len(self._chains) > MAX_CHAINS or self._tokens > MAX_HELD_TOKENS:
            yield from self._end(self._chains.popitem(last=False)[1])

    def due(self, now_ms: int) -> Iterator[Side]:
        """Yield what has been idle for long enough."""
        while self._chains:
            oldest = next(iter(self._chains.values()))
            if now_ms - oldest.latest_ms < self._idle_ms:
                return
            yield from self._end(self._chains.popitem(last=False)[1])

    def end_all(self) -> Iterator[Side]:
        """Yield everything as it is."""
        while self._chains:
            yield from self._end(self._chains.popitem(last=False)[1])

    def _add(self, chain: _Chain, stored: Stored, hashes: Hashes, at_ms: int) -> None:
        if not chain.prompt or _is_prompt(stored, hashes):
            chain.prompt.append(hashes)
        else:
            if not chain.response:
                chain.prompt.append(hashes[: stored.block_size])
            chain.response.append(hashes)
        chain.latest_ms = max(chain.latest_ms, at_ms)
        chain.tokens += len(hashes)
        self._tokens += len(hashes)

    def _end(self, chain: _Chain) -> Iterator[Side]:
        self._tokens -= chain.tokens
        for kind, pieces in ((Kind.PROMPT, chain.prompt), (Kind.RESPONSE, chain.response)):
            if pieces:
                yield Side(
                    kind=kind,
                    party=chain.party,
                    first_block=chain.first_block,
                    rank=chain.rank,
                    started_ms=chain.started_ms,
                    ended_ms=chain.latest_ms,
                    hashes=np.concatenate(pieces)[:MAX_SIDE_TOKENS],
                )


def _is_prompt(stored: Stored, hashes: Hashes) -> bool:
    """Tell a piece of a prompt from a piece of a response, both behind a chain.

    Of vLLM, whose events have extra keys, more than one block at once is a prompt.
    """
    if stored.salt_is_inherited:
        return len(stored.blocks) > 1
    return len(hashes) >= LONG_STORE_TOKENS


def _is_next_turn(chain: _Chain, stored: Stored, hashes: Hashes) -> bool:
    """Tell the prompt of a conversation's next turn: it goes on behind a response."""
    return bool(chain.response) and (_is_prompt(stored, hashes) or not stored.salt_is_inherited)
