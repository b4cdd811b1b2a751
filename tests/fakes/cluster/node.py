"""One serving process of the simulated cluster: its KV pool, its log, its counters."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.fakes.cluster.call import Call
from tests.fakes.cluster.exposition import EngineFigures
from tests.fakes.cluster.pool import KvPool

INPUT_MARGIN = 6
"""SGLang rejects a prompt of min(context, pool) - 6 tokens or more."""


class Node:
    """Lines go to `path` as they are said; `counters` are there from the start, at zero."""

    def __init__(
        self,
        name: str,
        path: Path,
        *,
        pool_tokens: int,
        context_tokens: int,
        newest_first: bool,
        counters: Iterable[str] = (),
    ) -> None:
        self.name, self.path = name, path
        self.context_tokens = context_tokens
        self.kv = KvPool(pool_tokens, newest_first=newest_first)
        self.running: list[Call] = []
        self.waiting = 0
        self.in_transfer = 0
        self.counters: Counter[str] = Counter(dict.fromkeys(counters, 0))
        self._prompt_tokens = 0
        self._finished = 0
        self._log = path.open("w", encoding="utf-8", newline="\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._log.close()

    @property
    def limit_tokens(self) -> int:
        """The lowest length of a prompt that is rejected."""
        return min(self.context_tokens, self.kv.total_tokens) - INPUT_MARGIN

    def say(self, line: str) -> None:
        """Write a line to the log."""
        self._log.write(line + "\n")

    def begin(self, call: Call) -> None:
        """Note that a request runs."""
        self.running.append(call)
        self._prompt_tokens += len(call.prompt)

    def end(self, call: Call) -> None:
        """Note that it does no more."""
        self.running.remove(call)
        self._finished += 1

    def figures(self) -> EngineFigures:
        """Return the state of now."""
        return EngineFigures(
            model=self.running[0].model if self.running else "qwen3-8b",
            pool_tokens=self.kv.total_tokens,
            context_tokens=self.context_tokens,
            used_tokens=self.kv.used_tokens,
            evictable_tokens=self.kv.evictable_tokens,
            running=len(self.running),
            queued=self.waiting,
            in_transfer=self.in_transfer,
            running_tokens=sum(len(call.prompt) + len(call.output) for call in self.running),
            prompt_tokens=self._prompt_tokens,
            requests=self._finished,
            counters=dict(self.counters),
        )
