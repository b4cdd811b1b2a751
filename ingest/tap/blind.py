"""What the tap could not see, counted by cause; a request counts once for each side of it."""

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Final

CAUSES: Final[Mapping[str, str]] = {
    "not_json": "the request is no JSON object",
    "body_too_large": "the request is larger than tap.max_body_bytes",
    "answer_too_large": "the answer is larger than tap.max_answer_bytes",
    "memory": "all requests together hold tap.held_bytes",
    "too_many_tokens": "the request has more ids than tap.request_tokens",
    "compressed_request": "the request is compressed",
    "compressed_answer": "the answer is compressed, which was not asked for",
    "not_offered": "the engine gives no ids for such a call",
    "echo": "the request echoes its prompt, which asking for ids would change",
    "no_answer": "the client or the engine broke off before the answer began",
    "no_ids": "the engine gave no ids, though asked",
    "ids_missing": "the engine gave fewer ids than it counts",
    "unread": "an answer, or an event of a stream, is not as expected",
    "unmapped": "no tenant rule matches",
    "waiting": "tap.waiting_bytes of finished requests wait already",
    "refused": "a request does not fit the bounds of a record",
    "fault": "a fault of bleedwatch",
}
"""Every cause, and what it means."""


class Blind:
    """Counts by cause. Any thread may count or read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def count(self, cause: str) -> None:
        """Count one request that could not be seen, or not whole."""
        assert cause in CAUSES
        with self._lock:
            self._counts[cause] += 1

    def counts(self) -> dict[str, int]:
        """Return the counts of every cause that there was."""
        with self._lock:
            return dict(self._counts)
