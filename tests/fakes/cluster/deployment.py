"""What every simulated deployment does: reserves pages, decodes, aborts, and hands answers over."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from random import Random
from typing import Final

from detector.sample.tokenizer import IM_END
from tests.fakes.cluster.answers import Answer, Attend
from tests.fakes.cluster.bugs import Bug
from tests.fakes.cluster.call import Call
from tests.fakes.cluster.node import Node
from tests.fakes.cluster.pool import PAGE_TOKENS, PoolFullError
from tests.fakes.cluster.schedule import Process, Schedule

FAULT_SHARE: Final = 0.25
"""Share of requests that a fault hits while its bug is switched on, where chance decides."""

QUEUE_S: Final = 0.05
PREFILL_S_PER_TOKEN: Final = 0.0003
RETRY_S: Final = 0.5
WAIT_S: Final = 60.0
"""How long a request waits for pages before the engine gives up."""

LEFT_BEHIND: Final = 4
"""One page of so many stays behind while the pool creeps full."""

DEGENERATE_TOKENS: Final = 200
TAIL_TOKENS: Final = 5

Deliver = Callable[[Call], None]


class Deployment(ABC):
    """Base of the deployments. `deliver` gets every call whose client gets an answer."""

    def __init__(
        self, schedule: Schedule, rng: Random, bugs: Collection[Bug], deliver: Deliver
    ) -> None:
        self.schedule = schedule
        self.rng = rng
        self.bugs = frozenset(bugs)
        self.deliver = deliver
        self._said: dict[str, list[int]] = {}
        self._offloaded: set[str] = set()

    @property
    def now_s(self) -> float:
        return self.schedule.now_s

    @abstractmethod
    def serve(self, call: Call) -> Process:
        """Serve one call from its arrival to its end."""

    def hits(self, bug: Bug) -> bool:
        """Decide whether a fault hits now."""
        return bug in self.bugs and self.rng.random() < FAULT_SHARE

    def reserve(self, node: Node, call: Call, tokens: int, pages: list[int]) -> Process:
        """Put pages for so many tokens into `pages`; none if the client left or waited in vain."""
        until_s = self.now_s + WAIT_S
        node.waiting += 1
        while self.now_s < until_s and not call.is_left(self.now_s):
            try:
                pages += node.kv.take(tokens)
                break
            except PoolFullError:
                yield RETRY_S
        node.waiting -= 1

    def room_for(self, call: Call) -> int:
        """Return how many tokens a request may need at the most."""
        return len(call.prompt) + 2 * len(call.own) + DEGENERATE_TOKENS + 4 * PAGE_TOKENS

    def decode(self, node: Node, call: Call, pages: list[int], attend: Attend | None) -> Process:
        """Make the answer from what the pages hold while it is made, unless the client leaves."""
        length = len(call.prompt)
        own = self._own(call)
        is_degenerate = self.hits(Bug.DEGENERATE_OUTPUT)
        answer = Answer(own, seed=call.request_id)
        while not answer.is_done and not call.is_left(self.now_s):
            made = answer.piece(attend or (lambda: node.kv.read(pages, length)))
            if is_degenerate:
                made = [made[0]] * DEGENERATE_TOKENS
            room = len(pages) * PAGE_TOKENS - length - len(call.output)
            node.kv.write(pages, length + len(call.output), made[: max(0, room)])
            call.output += made
            yield len(made) * call.seconds_per_token
            self._after_piece(node, call, pages)
            if is_degenerate:
                break
        if not call.is_left(self.now_s):
            call.finish_reason = "stop" if call.stops else "length"
            call.output += self._tail(call) + ([IM_END] if call.stops else [])

    def _tail(self, call: Call) -> list[int]:
        """Return what an engine that keeps text by request id adds to a reused one."""
        if Bug.REQUEST_ID_REUSED not in self.bugs:
            return []
        before, self._said[call.request_id] = self._said.get(call.request_id, []), call.output
        return before[-TAIL_TOKENS:]

    def _after_piece(self, node: Node, call: Call, pages: list[int]) -> None:
        """Release the pages after the first piece, when the offload begins, if that fault is on."""
        if Bug.FREED_WHILE_DECODING in self.bugs and call.request_id not in self._offloaded:
            self._offloaded.add(call.request_id)
            node.kv.release(pages)

    def _own(self, call: Call) -> tuple[int, ...]:
        """Return the model's own text; damaged state mixes up its order."""
        if not self.hits(Bug.CORRUPTED_STATE):
            return call.own
        words = list(call.own)
        self.rng.shuffle(words)
        return tuple(words)
