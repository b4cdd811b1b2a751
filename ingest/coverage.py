"""What one source could not show: every loss counted by cause, with the flag that fixes it.

Counts only. Neither ids nor text nor any part of a line is ever kept here, so a coverage table may
be printed, exported and attached to a ticket.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ingest.fixes import fix_for
from ingest.sources.base import Loss, RawRequest

BROKEN_SAMPLES = 3
"""Broken entries kept by line number: enough to look them up, too few to matter."""

_REASON = re.compile(r"[a-z][a-z0-9_]{0,39}")


class BrokenSample(NamedTuple):
    """Where a broken entry lies and, in a fixed word, what was wrong with it."""

    line: int | None
    reason: str


class LossRow(NamedTuple):
    """One row of the coverage table. `side` is "prompt" or "response"."""

    side: str
    loss: Loss
    requests: int
    fix: str


@dataclass(slots=True)
class SideCount:
    """Requests by what is held of one side. `none_expected`: the call generates nothing."""

    complete: int = 0
    none_expected: int = 0
    incomplete: dict[Loss, int] = field(default_factory=dict)

    def add(self, *, held: bool, loss: Loss | None) -> None:
        """Count one request: `held` says that ids were there at all."""
        if loss is not None:
            self.incomplete[loss] = self.incomplete.get(loss, 0) + 1
        elif held:
            self.complete += 1
        else:
            self.none_expected += 1


@dataclass(slots=True)
class Coverage:
    """Counters of one source; `kind` ("vllm", "sglang", ...) picks the advice.

    Filled by one reader and the door in one thread; read it at any time.
    """

    kind: str = ""
    lines: int = 0
    requests: int = 0
    prompts: SideCount = field(default_factory=SideCount)
    responses: SideCount = field(default_factory=SideCount)
    ignored_by_reason: dict[str, int] = field(default_factory=dict)
    broken_by_reason: dict[str, int] = field(default_factory=dict)
    broken_samples: list[BrokenSample] = field(default_factory=list)
    unmapped_tenants: int = 0

    def read(self, request: RawRequest) -> None:
        """Count one request that a reader is about to yield."""
        self.requests += 1
        self.prompts.add(held=request.prompt_ids is not None, loss=request.prompt_loss)
        self.responses.add(held=request.response_ids is not None, loss=request.response_loss)

    def broken(self, reason: str, line: int | None = None) -> None:
        """Count one entry that was skipped. A reason that is no plain word becomes "other"."""
        word = _plain(reason)
        self.broken_by_reason[word] = self.broken_by_reason.get(word, 0) + 1
        if len(self.broken_samples) < BROKEN_SAMPLES:
            self.broken_samples.append(BrokenSample(line, word))

    def ignored(self, reason: str) -> None:
        """Count one entry left out on purpose, such as a health check."""
        word = _plain(reason)
        self.ignored_by_reason[word] = self.ignored_by_reason.get(word, 0) + 1

    def unmapped(self) -> None:
        """Count one request that no tenant rule could place."""
        self.unmapped_tenants += 1

    def losses(self) -> Iterator[LossRow]:
        """Yield one row per side and cause, the largest count of each side first."""
        for side, counts in (("prompt", self.prompts), ("response", self.responses)):
            for loss, count in sorted(counts.incomplete.items(), key=lambda item: -item[1]):
                yield LossRow(side, loss, count, fix_for(self.kind, side, loss))


def _plain(reason: str) -> str:
    return reason if _REASON.fullmatch(reason) else "other"
