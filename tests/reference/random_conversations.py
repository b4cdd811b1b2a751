"""Small random conversations that ask alike and quote themselves, to compare with the oracle."""

import random

import numpy as np

from detector.model import EngineId, Kind, PoolId, RequestId, Role, Sequence, Span, TenantId

TENANTS = "abcde"
QUESTIONS = 3
"""Public ones, each with one answer: with few of them two tenants often ask the same."""

MARKER = 7
"""The token between two messages."""

Turn = tuple[Role, list[int]]


def random_conversations(seed: int, *, sessions: int = 6) -> list[Sequence]:
    """Return the prompts and responses of sessions that send their history with every turn.

    Answers quote whatever their prompt holds, system prompt and tool output included.
    """
    rng = random.Random(seed)
    public = [(_words(rng, 16), _words(rng, 30)) for _ in range(QUESTIONS)]
    return [one for n in range(sessions) for one in _session(rng, n, public)]


def _session(
    rng: random.Random, number: int, public: list[tuple[list[int], list[int]]]
) -> list[Sequence]:
    tenant, at_s = rng.choice(TENANTS), rng.randrange(120)
    turns: list[Turn] = []
    if rng.random() < 0.5:
        turns.append((Role.SYSTEM, _words(rng, 15) + _part(rng, rng.choice(public)[1], 0.3)))
    made: list[Sequence] = []
    for turn in range(rng.randrange(1, 4)):
        question, answer = rng.choice(public) if rng.random() < 0.7 else (_words(rng, 12), [])
        turns.append((Role.USER, question))
        if rng.random() < 0.2:
            turns.append((Role.TOOL, _words(rng, 12) + _part(rng, rng.choice(public)[1], 0.3)))
        quoted = _part(rng, rng.choice(turns)[1], 0.8)
        said = [*_words(rng, 4), *quoted, *_words(rng, 4), *_part(rng, answer, 0.9)]
        made += _request(tenant, f"r{number}-{turn}", at_s, turns, said)
        turns.append((Role.ASSISTANT, said))
        at_s += rng.randrange(10, 60)
    return made


def _request(
    tenant: str, name: str, at_s: int, turns: list[Turn], said: list[int]
) -> list[Sequence]:
    ids: list[int] = []
    spans: list[Span] = []
    for role, words in turns:
        spans += [
            Span(role, len(ids), len(ids) + len(words)),
            Span(Role.TEMPLATE, len(ids) + len(words), len(ids) + len(words) + 1),
        ]
        ids += [*words, MARKER]
    return [
        Sequence(
            tenant=TenantId(tenant), request_id=RequestId(name), kv_pool=PoolId("p"),
            engine=EngineId("e"), model="m", kind=kind, started_at_ms=at_s * 1000,
            ended_at_ms=end_s * 1000, token_hashes=np.array(tokens, np.uint32), spans=marked,
        )
        for kind, end_s, tokens, marked in (
            (Kind.PROMPT, at_s, ids, tuple(spans)), (Kind.RESPONSE, at_s + 5, said, ()),
        )
    ]  # fmt: skip


def _words(rng: random.Random, count: int) -> list[int]:
    return [10 + rng.randrange(10**9) for _ in range(count)]


def _part(rng: random.Random, words: list[int], chance: float) -> list[int]:
    """Return a stretch of some words, or nothing."""
    if rng.random() >= chance:
        return []
    begin = rng.randrange(max(1, len(words) - 15))
    return words[begin : begin + rng.randrange(10, 30)]
