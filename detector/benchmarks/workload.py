"""Synthetic token ids for benchmarks: Zipf text with stock phrases, in responses of one length."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from detector.sketch.batch import TokenBatch

VOCABULARY: Final = 262_144
"""The largest public vocabularies have this many entries."""

PHRASES: Final = 5_000
PHRASE_TOKENS: Final = (8, 40)
PHRASE_SHARE: Final = 0.1
"""Share of tokens that stand in stock phrases of 8 to 40 tokens, as boilerplate does in answers."""


def token_ids(tokens: int, *, seed: int) -> NDArray[np.uint32]:
    """Return a stream of token ids: Zipf with exponent 1, a tenth of it stock phrases."""
    draw = np.random.default_rng(seed)
    ids = _zipf(draw, tokens)
    bank = phrases()
    wanted = int(PHRASE_SHARE * tokens / np.mean([len(text) for text in bank]))
    chosen = np.minimum((PHRASES ** draw.random(wanted)).astype(np.int64), PHRASES) - 1
    places = draw.integers(0, max(tokens - PHRASE_TOKENS[1], 1), wanted)
    for phrase, at in zip(chosen.tolist(), places.tolist(), strict=True):
        text = bank[phrase]
        ids[at : at + len(text)] = text[: len(ids) - at]
    return ids


def phrases() -> list[NDArray[np.uint32]]:
    """Return the ids of every stock phrase, the most frequent first."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(*PHRASE_TOKENS, PHRASES, endpoint=True)
    return np.split(_zipf(draw, int(lengths.sum())), np.cumsum(lengths)[:-1])


def token_batch(tokens: int, *, length: int, seed: int) -> TokenBatch:
    """Return `tokens` ids cut into sequences of `length`, with a token table."""
    table = np.random.default_rng(0).integers(0, 1 << 32, VOCABULARY, dtype=np.uint32)
    offsets = np.append(np.arange(0, tokens, length, dtype=np.int64), np.int64(tokens))
    return TokenBatch(token_ids(tokens, seed=seed), offsets, table)


def _zipf(draw: np.random.Generator, count: int) -> NDArray[np.uint32]:
    """Draw ranks with probability proportional to 1 / rank, by the inverse of its integral."""
    ranks = np.floor(np.float64(VOCABULARY) ** draw.random(count)).astype(np.uint32)
    return np.minimum(ranks, VOCABULARY - 1)
