"""The gateway before the engines: what it delivers to whom, its caches, and its own access log."""

from collections.abc import Collection
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from detector.model import Role
from detector.sample.chatml import messages_of
from tests.fakes.cluster.bugs import Bug
from tests.fakes.cluster.call import Call
from tests.fakes.cluster.sglang_log import EPOCH_S

SWAP_CHANCE: Final = 0.2
ALIKE_TOKENS: Final = 6
"""A semantic cache takes questions for the same that begin alike: it compares what they ask."""

CACHE_S: Final = 0.05


class Gateway:
    """Answers pass through it; with a fault on, not to whom they belong.

    `skew_s` is how far its clock is ahead of the engines'.
    """

    def __init__(
        self, path: Path, rng: Random, bugs: Collection[Bug], *, kv_pool: str, skew_s: float = 0.0
    ) -> None:
        self.path = path
        self._rng, self._bugs = rng, frozenset(bugs)
        self._kv_pool, self._skew_s = kv_pool, skew_s
        self._log = path.open("wb")
        self._held: Call | None = None
        """The call whose answer changes places with the next one."""
        self._left_over: list[int] = []
        """What was last read from a connection that is one answer behind."""
        self._cache: dict[tuple[int, ...], list[int]] = {}

    def close(self) -> None:
        self._log.close()

    def cached(self, call: Call) -> bool:
        """Answer from the cache, if it holds an answer to that question; whose, it does not ask."""
        key = self._key(call)
        if key is None or key not in self._cache:
            return False
        call.output, call.finish_reason = list(self._cache[key]), "stop"
        call.told_prompt_tokens, call.ended_s = len(call.prompt), call.arrives_s + CACHE_S
        self._note(call)
        return True

    def deliver(self, call: Call) -> None:
        """Hand an answer over, and write down what was handed over."""
        other, self._held = self._held, None
        if other is not None:
            other.output, call.output = call.output, other.output
            self._note(other)
        elif Bug.RESPONSE_SWAPPED in self._bugs and self._rng.random() < SWAP_CHANCE:
            self._held = call
            return
        if Bug.CONNECTION_OUT_OF_STEP in self._bugs:
            self._left_over, call.output = call.output, self._left_over or call.output
        if (key := self._key(call)) is not None:
            self._cache[key] = call.output
        self._note(call)

    def rejected(self, call: Call, status: int) -> None:
        """Write down a request that got no answer."""
        call.ended_s = call.arrives_s
        self._note(call, status=status)

    def _key(self, call: Call) -> tuple[int, ...] | None:
        exact = Bug.GATEWAY_CACHE_WITHOUT_TENANT in self._bugs
        if not exact and Bug.SEMANTIC_CACHE_WITHOUT_TENANT not in self._bugs:
            return None
        last = messages_of(call.prompt)[-1]
        if last.role is not Role.USER:
            return None
        return last.ids if exact else last.ids[:ALIKE_TOKENS]

    def _note(self, call: Call, *, status: int = 200) -> None:
        start = EPOCH_S + self._skew_s
        line = {
            "request_id": call.request_id,
            "ts": round(start + call.arrives_s, 3),
            "ts_end": round(start + call.ended_s, 3),
            "engine": "gateway",
            "kv_pool": self._kv_pool,
            "tenant": call.tenant,
            "model": call.model,
            "session": call.session,
            "status": status,
            "finish_reason": call.finish_reason,
            "reported_prompt_tokens": call.told_prompt_tokens if status == 200 else None,
            "prompt_ids": call.prompt,
            "response_ids": call.output if status == 200 else None,
        }
        self._log.write(msgspec.json.encode(line) + b"\n")
