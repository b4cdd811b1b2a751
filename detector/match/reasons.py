"""Why two tenants may legitimately show the same shingle, in the order the filter asks."""

import enum

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint8]
"""Reasons by number, UNEXPLAINED where there is none."""


class Reason(enum.StrEnum):
    """One explanation; each matched shingle is counted under the first that applies."""

    OWN_PROMPT = "own_prompt"
    COMMON = "common"
    OWN_HISTORY = "own_history"
    SAME_ACCOUNT = "same_account"
    GATEWAY_CACHE = "gateway_cache"
    SIBLING = "sibling"
    SAME_QUESTION = "same_question"
    TEMPLATE = "template"
    ALLOW_LIST = "allow_list"


UNEXPLAINED = 0
CODES: dict[Reason, int] = {reason: code for code, reason in enumerate(Reason, start=1)}
REASONS: dict[int, Reason] = {code: reason for reason, code in CODES.items()}


def by_reason(counts: NDArray[np.int64]) -> dict[str, int]:
    """Return the counts of a bincount over codes by reason, without the unexplained."""
    return {REASONS[code].value: n for code, n in enumerate(counts.tolist()) if code and n}
