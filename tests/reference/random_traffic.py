"""Small random traffic that is rich in overlap, for comparing the detector with the oracle."""

import random

import numpy as np

from detector.model import EngineId, Kind, PoolId, RequestId, Role, Sequence, Span, TenantId

TENANTS = "abcd"
POOLS = "pq"
ROLES = (Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL)
SECONDS = 400
"""Starts spread beyond the window, and within the time that sequences stay alive."""


def random_traffic(seed: int, *, requests: int = 9) -> list[Sequence]:
    """Return prompts and responses made of a few shared phrases, some noisy or cut, and filler.

    Odd seeds also use spans, pools, accounts, retries and gateway caches.
    """
    rng = random.Random(seed)
    phrases = [[rng.randrange(1000) for _ in range(rng.choice((10, 12, 20, 30)))] for _ in range(4)]
    rich = seed % 2 == 1
    return [s for n in range(requests) for s in _request(rng, n, phrases, rich=rich)]


def _request(
    rng: random.Random, number: int, phrases: list[list[int]], *, rich: bool
) -> list[Sequence]:
    start = rng.randrange(SECONDS) * 1000
    tenant = rng.choice(TENANTS)
    pool = rng.choice(POOLS) if rich else POOLS[0]
    account = rng.choice((None, None, None, "x")) if rich else None
    parent = f"r{rng.randrange(number + 1)}" if rich and rng.random() < 0.1 else None
    cached = rich and rng.random() < 0.1

    def sequence(kind: Kind, ids: list[int], end: int, spans: tuple[Span, ...] = ()) -> Sequence:
        return Sequence(
            tenant=TenantId(tenant), request_id=RequestId(f"r{number}"), kv_pool=PoolId(pool),
            engine=EngineId("e"), model="m", kind=kind, started_at_ms=start, ended_at_ms=end,
            token_hashes=np.array(ids, np.uint32), spans=spans, account=account,
            parent_id=RequestId(parent) if parent else None, gateway_cache_hit=cached,
        )  # fmt: skip

    asked, answered = _text(rng, phrases), _text(rng, phrases)
    spans = _spans(rng, len(asked)) if rich and rng.random() < 0.7 else ()
    return [
        sequence(Kind.PROMPT, asked, start, spans),
        sequence(Kind.RESPONSE, answered, start + rng.choice((500, 5000, 60_000))),
    ]


def _text(rng: random.Random, phrases: list[list[int]]) -> list[int]:
    ids: list[int] = []
    for _ in range(rng.randrange(1, 4)):
        if rng.random() < 0.5:
            ids += [10_000 + rng.randrange(10**6) for _ in range(rng.randrange(8))]
            continue
        phrase = list(rng.choice(phrases))
        if rng.random() < 0.3:
            phrase[rng.randrange(len(phrase))] = 5000 + rng.randrange(1000)
        ids += phrase[rng.randrange(4) if rng.random() < 0.3 else 0 :]
    return ids


def _spans(rng: random.Random, length: int) -> tuple[Span, ...]:
    """Cut a prompt into spans; one token between two of them is the template's."""
    spans: list[Span] = []
    at = 0
    while at < length:
        end = min(at + rng.randrange(5, 30), length)
        spans.append(Span(rng.choice(ROLES), at, end))
        if end < length:
            spans.append(Span(Role.TEMPLATE, end, end + 1))
        at = end + 1
    return tuple(spans)
