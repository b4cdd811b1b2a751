"""SGLang with prefill and decode apart: KV goes from one to the other by writes that take time."""

from collections.abc import Collection
from itertools import count
from random import Random
from typing import Final

from tests.fakes.cluster import sglang_log as log
from tests.fakes.cluster.bugs import Bug
from tests.fakes.cluster.call import Call
from tests.fakes.cluster.deployment import (
    LEFT_BEHIND,
    PREFILL_S_PER_TOKEN,
    QUEUE_S,
    Deliver,
    Deployment,
)
from tests.fakes.cluster.node import Node
from tests.fakes.cluster.pool import PAGE_TOKENS, PoolFullError, content_keys
from tests.fakes.cluster.schedule import Process, Schedule

TRANSFER_S: Final = 0.08
SLOW_S: Final = (3.0, 9.0)
IMPATIENT_CHANCE: Final = 0.7
IMPATIENT_S: Final = (0.5, 2.0)
POLL_S: Final = 0.05

RELEASE_LIMIT_S: Final = 2.0
"""How long a deferred release waits; SGLang's own limit is 30 s, its transfers as much slower."""

_ABORTED = frozenset({Bug.CHECKSUM_MISMATCH, Bug.METADATA_MISMATCH, Bug.TRANSFER_FAILURES})
_LEAKS = frozenset({Bug.UNRELEASED_AFTER_ABORT, Bug.LEAK_REPORTED})


class _Transfer:
    """Tokens on their way into pages of the decode engine."""

    def __init__(self, pages: list[int], tokens: list[int]) -> None:
        self.pages, self.tokens = list(pages), tokens
        self.is_done = False

    def landing(self, node: Node, seconds: float) -> Process:
        """Write them when they arrive, whoever owns the pages by then."""
        yield seconds
        node.kv.write(self.pages, 0, self.tokens)
        self.is_done = True


class SglangPd(Deployment):
    """One prefill and one decode engine in one KV pool."""

    def __init__(
        self,
        schedule: Schedule,
        rng: Random,
        bugs: Collection[Bug],
        deliver: Deliver,
        *,
        prefill: Node,
        decode: Node,
        slow_share: float,
    ) -> None:
        """`slow_share` of the transfers are slow, and clients often do not wait for those."""
        super().__init__(schedule, rng, bugs, deliver)
        self._slow_share = slow_share
        self.prefill_node, self.decode_node = prefill, decode
        self._rooms = count(1_000)
        self._sent: list[int] = []

    def serve(self, call: Call) -> Process:
        """Serve one call from its arrival to its end."""
        node = self.decode_node
        node.say(log.received(call, self.now_s))
        yield QUEUE_S
        is_over = len(call.prompt) >= self.prefill_node.limit_tokens
        if is_over:
            limit = self.prefill_node.limit_tokens
            self.prefill_node.say(log.over_limit(call, self.now_s, limit_tokens=limit))
            if Bug.STALE_AFTER_REJECT not in self.bugs:
                self._rejected(call)
                return
        pages: list[int] = []
        yield from self.reserve(node, call, self.room_for(call), pages)
        if not pages:
            return
        tokens = list(call.prompt[:1] if is_over else call.prompt)
        call.told_prompt_tokens = len(call.prompt)
        if self.hits(Bug.USAGE_MISMATCH):
            tokens, call.told_prompt_tokens = tokens[:1], 1
        node.in_transfer += 1  # its pages are reserved, so it waits in that queue from now on
        yield from self._prefill(call, tokens)
        room = next(self._rooms)
        transfer = _Transfer(pages, self._delivered(tokens))
        yield from self._transferred(call, transfer)
        node.in_transfer -= 1
        if call.is_left(self.now_s):
            self._left(call, transfer, room)
        elif self._fails(call, transfer.tokens, room):
            self._ended(call, pages)
        else:
            yield from self._decoded(call, pages)

    def _rejected(self, call: Call) -> None:
        if Bug.UNRELEASED_AFTER_REJECT in self.bugs:
            try:
                self.decode_node.kv.take(len(call.prompt))
            except PoolFullError:
                return

    def _prefill(self, call: Call, tokens: list[int]) -> Process:
        """Compute the prompt on the prefill engine, whose cache keeps it."""
        kv = self.prefill_node.kv
        keys = content_keys(tokens, call.tenant)
        pages = kv.reuse(keys[: max(0, len(tokens) - 1) // PAGE_TOKENS])
        call.cached_tokens = len(pages) * PAGE_TOKENS
        try:
            pages += kv.take(len(tokens) - call.cached_tokens)
        except PoolFullError:  # a real one would wait; its memory is not what is looked at here
            kv.release(pages)
            return
        kv.write(pages, 0, tokens)
        self.prefill_node.begin(call)
        yield PREFILL_S_PER_TOKEN * (len(tokens) - call.cached_tokens)
        self.prefill_node.end(call)
        kv.cache(keys, pages)
        kv.release(pages)

    def _delivered(self, tokens: list[int]) -> list[int]:
        """Return what the connector delivers: now and then what it sent the time before."""
        sent, self._sent = self._sent, tokens
        mistakes = (Bug.CONNECTOR_MIS_TRANSFER, Bug.CHECKSUM_MISMATCH)
        if sent and any(self.hits(bug) for bug in mistakes):
            return (sent * (len(tokens) // len(sent) + 1))[: len(tokens)]
        return tokens

    def _transferred(self, call: Call, transfer: _Transfer) -> Process:
        """Wait until the KV has landed, or the client has left."""
        is_slow = self.rng.random() < self._slow_share
        seconds = self.rng.uniform(*SLOW_S) if is_slow else TRANSFER_S
        if is_slow and self.rng.random() < IMPATIENT_CHANCE:
            leaves_s = self.now_s + self.rng.uniform(*IMPATIENT_S)
            call.leaves_s = min(call.leaves_s, leaves_s)
        self.schedule.start(transfer.landing(self.decode_node, seconds))
        while not transfer.is_done and not call.is_left(self.now_s):
            yield POLL_S

    def _left(self, call: Call, transfer: _Transfer, room: int) -> None:
        """Abort a request whose client left while its KV was on the way."""
        node = self.decode_node
        node.say(log.disconnected(call, self.now_s))
        if Bug.ABORT_REPORTED_AS_LENGTH in self.bugs:
            call.finish_reason = "length"
            self._answered(call)
        if _LEAKS & self.bugs:
            return
        if Bug.FREED_UNDER_WRITE in self.bugs:
            node.kv.release(transfer.pages)
            return
        limit_s = RELEASE_LIMIT_S if Bug.DEFERRED_RELEASE_TIMEOUT in self.bugs else float("inf")
        self.schedule.start(self._released_later(transfer, room, limit_s))

    def _released_later(self, transfer: _Transfer, room: int, limit_s: float) -> Process:
        """Release the pages once nothing writes to them any more, or at a limit."""
        until_s = self.now_s + limit_s
        while not transfer.is_done:
            if self.now_s >= until_s:
                line = log.deferred_release(self.now_s, room=room, seconds=RELEASE_LIMIT_S)
                self.decode_node.say(line)
                break
            yield POLL_S
        self.decode_node.kv.release(transfer.pages)

    def _fails(self, call: Call, received: list[int], room: int) -> bool:
        """Let the engine look at what it got; return whether it aborts the request."""
        node = self.decode_node
        if Bug.CHECKSUM_MISMATCH in self.bugs and received != list(call.prompt):
            sums = {"expected": len(call.prompt) * 7919, "got": len(received) * 104_729}
            node.say(log.checksum_mismatch(call, self.now_s, room=room, **sums))
            node.counters["num_transfer_failed_reqs_total"] += 1
            return self._aborted(call, "KV checksum mismatch")
        if self.hits(Bug.METADATA_MISMATCH):
            node.say(log.metadata_mismatch(call, self.now_s, room=room, other=room - 1))
            return self._aborted(call, "Metadata corruption detected - bootstrap_room mismatch")
        if self.hits(Bug.TRANSFER_FAILURES):
            node.say(log.transfer_failed(call, self.now_s, room=room))
            node.counters["num_transfer_failed_reqs_total"] += 1
            return self._aborted(call, "Decode transfer failed")
        return False

    def _aborted(self, call: Call, message: str) -> bool:
        call.finish_reason, call.message = "abort", message
        self.decode_node.say(log.finished(call, self.now_s))
        return True

    def _decoded(self, call: Call, pages: list[int]) -> Process:
        node = self.decode_node
        node.begin(call)
        yield from self.decode(node, call, pages, None)
        node.end(call)
        if call.finish_reason is None:
            node.say(log.disconnected(call, self.now_s))
            if _LEAKS & self.bugs:
                return
        else:
            self._answered(call)
        self._ended(call, pages)

    def _answered(self, call: Call) -> None:
        call.ended_s = self.now_s
        self.decode_node.say(log.finished(call, self.now_s))
        self.deliver(call)

    def _ended(self, call: Call, pages: list[int]) -> None:
        """Release the pages of a request."""
        kv = self.decode_node.kv
        if Bug.POOL_CREEP in self.bugs:
            del pages[: len(pages) // LEFT_BEHIND]
        if Bug.FREED_WHILE_DECODING in self.bugs and call.output:
            return  # they were released when the offload began
        kv.release(pages)
        if self.hits(Bug.DOUBLE_FREE):
            kv.free_again(pages)
            self.decode_node.say(log.double_free(self.now_s, pages=len(pages)))
