"""Edited copies: whole responses of one tenant, changed, put in place of another's."""

from collections import defaultdict
from collections.abc import Callable

import msgspec
import numpy as np

from detector.model import Hashes, Kind, Sequence

Edit = Callable[[Hashes, np.random.Generator, Hashes], Hashes]
"""Changes a text: (its tokens, draw, the vocabulary to draw other tokens from)."""

LEAST_TOKENS = 130
"""Shorter responses are not copied: they have fewer than 128 bigrams."""

LEAST_AGE_MS, MOST_AGE_MS = 1, 200_000

Truth = dict[tuple[str, str], tuple[str, str]]
"""(tenant, request) that received a copy, to (tenant, request) whose response it is."""


def at_random(share: float) -> Edit:
    """Replace each token with that probability."""

    def edit(tokens: Hashes, draw: np.random.Generator, vocabulary: Hashes) -> Hashes:
        at = np.flatnonzero(draw.random(len(tokens)) < share)
        return _replaced(tokens, at, draw.choice(vocabulary, len(at)))

    return edit


def every(step: int) -> Edit:
    """Replace every `step`-th token."""

    def edit(tokens: Hashes, draw: np.random.Generator, vocabulary: Hashes) -> Hashes:
        at = np.arange(int(draw.integers(step)), len(tokens), step)
        return _replaced(tokens, at, draw.choice(vocabulary, len(at)))

    return edit


def inserted(step: int) -> Edit:
    """Put another token in after every `step` tokens."""

    def edit(tokens: Hashes, draw: np.random.Generator, vocabulary: Hashes) -> Hashes:
        at = np.arange(int(draw.integers(step)), len(tokens), step)
        return np.insert(tokens, at, draw.choice(vocabulary, len(at)))

    return edit


EDITS: dict[str, Edit] = {
    "5 % of tokens": at_random(0.05),
    "10 % of tokens": at_random(0.1),
    "20 % of tokens": at_random(0.2),
    "30 % of tokens": at_random(0.3),
    "every 12th token": every(12),
    "every 10th token": every(10),
    "every 8th token": every(8),
    "every 6th token": every(6),
    "one put in after every 8": inserted(8),
    "one put in after every 6": inserted(6),
    "one put in after every 4": inserted(4),
}


def copied(
    traffic: list[Sequence], edit: Edit, *, count: int, seed: int, across: bool = False
) -> tuple[list[Sequence], Truth]:
    """Return the traffic with `count` responses replaced by edited copies, and whose they are.

    Source and receiver are of one pool, or of two pools if `across` is set.
    """
    draw = np.random.default_rng(seed)
    vocabulary = np.unique(np.concatenate([one.token_hashes for one in traffic]))
    responses = [one for one in traffic if one.kind is Kind.RESPONSE]
    pools: dict[str, list[Sequence]] = defaultdict(list)
    for one in responses:
        pools[one.kv_pool].append(one)
    changed: dict[int, Sequence] = {}
    used: set[int] = set()
    truth: Truth = {}
    for number in draw.permutation(len(responses)).tolist():
        sink = responses[number]
        near = [at for at in pools if (at != sink.kv_pool) == across]
        fitting = [
            one for at in near for one in pools[at] if id(one) not in used and _fit(one, sink)
        ]
        if id(sink) in used or not fitting:
            continue
        source = fitting[int(draw.integers(len(fitting)))]
        used |= {id(sink), id(source)}
        tokens = np.ascontiguousarray(edit(source.token_hashes, draw, vocabulary))
        changed[id(sink)] = msgspec.structs.replace(sink, token_hashes=tokens)
        truth[sink.tenant, sink.request_id] = (source.tenant, source.request_id)
        if len(truth) == count:
            break
    return [changed.get(id(one), one) for one in traffic], truth


def _fit(source: Sequence, sink: Sequence) -> bool:
    age_ms = sink.started_at_ms - source.started_at_ms
    long_enough = len(source.token_hashes) >= LEAST_TOKENS
    return source.tenant != sink.tenant and long_enough and LEAST_AGE_MS <= age_ms <= MOST_AGE_MS


def _replaced(
    tokens: Hashes, at: "np.ndarray[tuple[int], np.dtype[np.int64]]", by: Hashes
) -> Hashes:
    changed = tokens.copy()
    changed[at] = by
    return changed
