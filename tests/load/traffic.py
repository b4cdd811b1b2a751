"""Endless generated traffic for load tests: prompts and responses dated now, with planted bleeds.

Tokens follow Zipf's law with stock phrases in between, as in the benchmarks; no two requests share
anything else, so whatever is found beyond stock phrases was planted.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detector.benchmarks.workload import PHRASE_SHARE, PHRASE_TOKENS, PHRASES, VOCABULARY
from detector.model import EngineId, Hashes, Kind, PoolId, RequestId, Sequence, TenantId
from detector.rules.content import finding_id

PROMPT_TOKENS: Final = 1_000
RESPONSE_TOKENS: Final = 500
REQUEST_TOKENS: Final = PROMPT_TOKENS + RESPONSE_TOKENS
"""Two thirds of all tokens are prompts, as in ordinary chat traffic."""

TENANTS: Final = 50
POOLS: Final = 16
"""Twice the partitions, so that none is empty and some hold two."""

DURATION_MS: Final = 5_000
"""How long every response takes."""

BLEED_TOKENS: Final = 64
"""Long enough to be high in a pool of any density, and for winnowing at any window."""

RECENT_PROMPTS: Final = 32
"""Prompts of each pool from which a bleed is copied: the last few seconds of it."""


class Planted(NamedTuple):
    """A response that holds tokens of another tenant's prompt, and the id of its finding."""

    sink: Sequence
    finding_id: str


class Traffic:
    """Requests of all pools in turn, each of another tenant than the one before it in its pool."""

    def __init__(self, *, seed: int) -> None:
        self._draw = np.random.default_rng(seed)
        self._table = self._draw.integers(0, 1 << 32, VOCABULARY, dtype=np.uint32)
        lengths = self._draw.integers(*PHRASE_TOKENS, PHRASES, endpoint=True)
        self._phrases = np.split(self._tokens(int(lengths.sum())), np.cumsum(lengths)[:-1])
        self._phrase_tokens = float(lengths.mean())
        self._recent: dict[int, deque[Sequence]] = {
            pool: deque(maxlen=RECENT_PROMPTS) for pool in range(POOLS)
        }
        self._open: deque[Sequence] = deque()
        self._count = 0

    def prompts(self, count: int, now_ms: int) -> Iterator[Sequence]:
        """Yield the prompts of new requests that start now."""
        text = self._text(count * PROMPT_TOKENS)
        for number in range(count):
            hashes = text[number * PROMPT_TOKENS :][:PROMPT_TOKENS]
            yield self._prompt(hashes, now_ms)

    def responses(self, now_ms: int) -> Iterator[Sequence]:
        """Yield the responses of the requests that end now."""
        ended = 0
        while ended < len(self._open) and self._ends(self._open[ended]) <= now_ms:
            ended += 1
        text = self._text(ended * RESPONSE_TOKENS)
        for number in range(ended):
            hashes = text[number * RESPONSE_TOKENS :][:RESPONSE_TOKENS]
            yield self._response(self._open.popleft(), hashes)

    def bleed(self, response: Sequence) -> Planted | None:
        """Copy tokens of a recent prompt of another tenant of the pool into a response.

        None while the pool has no prompt that started before the response ended.
        """
        pool = int(response.kv_pool.removeprefix("pool-"))
        others = [
            prompt
            for prompt in self._recent[pool]
            if prompt.tenant != response.tenant and prompt.started_at_ms < response.ended_at_ms
        ]
        if not others:
            return None
        source = others[int(self._draw.integers(len(others)))]
        start = int(self._draw.integers(PROMPT_TOKENS - BLEED_TOKENS))
        at = int(self._draw.integers(RESPONSE_TOKENS - BLEED_TOKENS))
        copied = source.token_hashes[start : start + BLEED_TOKENS]
        response.token_hashes[at : at + BLEED_TOKENS] = copied
        return Planted(response, finding_id(response, source.tenant))

    def _prompt(self, hashes: Hashes, now_ms: int) -> Sequence:
        pool = self._count % POOLS
        prompt = Sequence(
            tenant=TenantId(f"tenant-{self._count // POOLS % TENANTS}"),
            request_id=RequestId(f"request-{self._count}"),
            kv_pool=PoolId(f"pool-{pool}"),
            engine=EngineId(f"engine-{pool}"),
            model="model",
            kind=Kind.PROMPT,
            started_at_ms=now_ms,
            ended_at_ms=now_ms,
            token_hashes=hashes,
            prompt_token_count=PROMPT_TOKENS,
        )
        self._count += 1
        self._recent[pool].append(prompt)
        self._open.append(prompt)
        return prompt

    def _response(self, prompt: Sequence, hashes: Hashes) -> Sequence:
        return Sequence(
            tenant=prompt.tenant,
            request_id=prompt.request_id,
            kv_pool=prompt.kv_pool,
            engine=prompt.engine,
            model=prompt.model,
            kind=Kind.RESPONSE,
            started_at_ms=prompt.started_at_ms,
            ended_at_ms=self._ends(prompt),
            token_hashes=hashes,
            prompt_token_count=PROMPT_TOKENS,
            finish_reason="stop",
            status=200,
        )

    @staticmethod
    def _ends(prompt: Sequence) -> int:
        return prompt.started_at_ms + DURATION_MS

    def _text(self, tokens: int) -> Hashes:
        """Return the hashes of so many tokens of text."""
        ids = self._tokens(tokens)
        wanted = int(PHRASE_SHARE * tokens / self._phrase_tokens)
        chosen = np.minimum((PHRASES ** self._draw.random(wanted)).astype(np.int64), PHRASES) - 1
        places = self._draw.integers(0, max(tokens - PHRASE_TOKENS[1], 1), wanted)
        for phrase, at in zip(chosen.tolist(), places.tolist(), strict=True):
            text = self._phrases[phrase]
            ids[at : at + len(text)] = text[: tokens - at]
        return self._table[ids]

    def _tokens(self, count: int) -> NDArray[np.int64]:
        """Draw token ids with probability about proportional to 1 / rank."""
        ranks = np.floor(np.float64(VOCABULARY) ** self._draw.random(count)).astype(np.int64)
        return np.minimum(ranks, VOCABULARY - 1)
