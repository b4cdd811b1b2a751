"""vLLM in one process, with its prefix cache and the KV events that it publishes."""

from collections.abc import Collection
from random import Random
from typing import Final

from tests.fakes.cluster import vllm_log as log
from tests.fakes.cluster.bugs import Bug
from tests.fakes.cluster.call import Call
from tests.fakes.cluster.deployment import (
    LEFT_BEHIND,
    PREFILL_S_PER_TOKEN,
    QUEUE_S,
    Deliver,
    Deployment,
)
from tests.fakes.cluster.kv_publisher import KvPublisher
from tests.fakes.cluster.node import Node
from tests.fakes.cluster.pool import PAGE_TOKENS, colliding_keys, content_keys
from tests.fakes.cluster.schedule import Process, Schedule

STALE_PIECES: Final = 3
"""Steps for which a recycled row of the batch holds the page list of the request before."""


class VllmUnified(Deployment):
    """One engine that reads prompts and decodes."""

    def __init__(
        self,
        schedule: Schedule,
        rng: Random,
        bugs: Collection[Bug],
        deliver: Deliver,
        *,
        node: Node,
        publisher: KvPublisher,
    ) -> None:
        super().__init__(schedule, rng, bugs, deliver)
        self._node, self._publisher = node, publisher
        self._row: tuple[list[int], int] | None = None

    def serve(self, call: Call) -> Process:
        """Serve one call from its arrival to its end."""
        node = self._node
        for line in log.received(call, self.now_s):
            node.say(line)
        yield QUEUE_S
        is_over = len(call.prompt) >= node.limit_tokens
        if is_over and Bug.OVER_LIMIT_ANSWERED not in self.bugs:
            return
        keys = self._keys(call)
        pages = node.kv.reuse(keys[: (len(call.prompt) - 1) // PAGE_TOKENS])
        call.cached_tokens = len(pages) * PAGE_TOKENS
        self._publisher.reused(self.now_s, call, keys[: len(pages)])
        room = min(self.room_for(call), node.kv.total_tokens // 2)
        own: list[int] = []
        yield from self.reserve(node, call, room - call.cached_tokens, own)
        if not own:
            node.kv.release(pages)
            return
        pages += own
        fitting = call.prompt[: len(pages) * PAGE_TOKENS]
        node.kv.write(pages, call.cached_tokens, fitting[call.cached_tokens :])
        node.begin(call)
        yield PREFILL_S_PER_TOKEN * (len(fitting) - call.cached_tokens)
        self._publisher.stored(self.now_s, call, keys, node.kv.cache(keys, pages))
        yield from self._decoded(call, pages)

    def _decoded(self, call: Call, pages: list[int]) -> Process:
        node, length = self._node, len(call.prompt)
        stale = self._row if self.hits(Bug.BATCH_ROW_REUSED) else None
        steps = [stale] * STALE_PIECES if stale else []

        def attend() -> list[int]:
            held, tokens = steps.pop() if steps else (pages, length)
            return node.kv.read(held, tokens)

        yield from self.decode(node, call, pages, attend)
        node.end(call)
        self._row = (list(pages), length)
        if call.finish_reason is None:
            node.say(log.aborted(call, self.now_s))
            if Bug.UNRELEASED_AFTER_ABORT in self.bugs:
                return
        else:
            call.ended_s, call.told_prompt_tokens = self.now_s, length
            for line in log.finished(call, self.now_s):
                node.say(line)
            self.deliver(call)
        if Bug.POOL_CREEP in self.bugs:
            del pages[: len(pages) // LEFT_BEHIND]
        node.kv.release(pages)

    def _keys(self, call: Call) -> list[int]:
        if Bug.CACHE_KEY_COLLISION in self.bugs:
            return colliding_keys(call.prompt)
        without = Bug.CACHE_KEY_WITHOUT_TENANT in self.bugs
        return content_keys(call.prompt, "" if without else call.tenant)
