"""Same question: the last user turns of two requests are identical or near-duplicates.

Measured on real traffic: above 24 tokens, almost all legitimate overlap between tenants is one
public question answered twice (30 of 31), and only this rule removes it.
"""

from collections.abc import Iterable

import numpy as np

from detector.model import Hashes, Role, Sequence, Span
from detector.sketch.shingle import Keys, Mask, distinct, shingle_keys


def last_user_turn(prompts: Iterable[Sequence]) -> Hashes | None:
    """Return the token hashes of the last user span of a request's prompt, None without spans."""
    found: tuple[int, Hashes] | None = None
    for prompt in prompts:
        for span in prompt.spans:
            if span.role is Role.USER and (found is None or prompt.part >= found[0]):
                found = (prompt.part, prompt.token_hashes[span.start : span.end])
    return None if found is None else found[1]


def answered_turns(prompt: Sequence) -> list[tuple[Span, Hashes]]:
    """Return the user and assistant spans of a prompt, each with the user turn it belongs to.

    A user span belongs to itself and an assistant span, an earlier answer that the client sent
    back as history, to the user turn before it.
    """
    turns: list[tuple[Span, Hashes]] = []
    asked: Hashes | None = None
    for span in prompt.spans:
        if span.role is Role.USER:
            asked = prompt.token_hashes[span.start : span.end]
        if asked is not None and span.role in (Role.USER, Role.ASSISTANT):
            turns.append((span, asked))
    return turns


def shown_in_same_turns(
    prompts: Iterable[Sequence], question: Hashes | None, containment: float
) -> Keys:
    """Return the shingles that prompts show first where that question is asked or answered.

    Text that a conversation repeats is judged where it stood first: what was in a system prompt or
    a tool output before is not among them, whoever says it again.
    """
    keys: list[Keys] = []
    same: list[Mask] = []
    for prompt in prompts:
        keys.append(shingle_keys(prompt.token_hashes))
        same.append(np.zeros(len(keys[-1]), np.bool_))
        for span, asked in answered_turns(prompt):
            if same_question(question, asked, containment):
                same[-1][span.start : span.end] = True
    if not any(mask.any() for mask in same):
        return np.empty(0, np.int64)
    shown, first = np.unique(np.concatenate(keys), return_index=True)
    return shown[np.concatenate(same)[first]]


def same_question(first: Hashes | None, second: Hashes | None, containment: float) -> bool:
    """True when both turns are known and identical, or share enough shingles.

    `containment` is the share of the smaller turn's distinct shingles that the other one holds.
    """
    if first is None or second is None or not len(first) or not len(second):
        return False
    if np.array_equal(first, second):
        return True
    keys, other = distinct(shingle_keys(first)), distinct(shingle_keys(second))
    smaller = min(len(keys), len(other))
    if not smaller:
        return False
    shared = len(np.intersect1d(keys, other, assume_unique=True))
    return shared >= containment * smaller
