"""vLLM with prefill and decode apart: decode pulls the KV that prefill holds under a lease."""

from collections.abc import Collection
from random import Random
from typing import Final

from tests.fakes.cluster import vllm_log as log
from tests.fakes.cluster.bugs import Bug
from tests.fakes.cluster.call import Call
from tests.fakes.cluster.deployment import PREFILL_S_PER_TOKEN, QUEUE_S, Deliver, Deployment
from tests.fakes.cluster.node import Node
from tests.fakes.cluster.schedule import Process, Schedule

PULL_S: Final = 0.1
LATE_CHANCE: Final = 0.2
LATE_S: Final = (3.0, 8.0)
LEASE_S: Final = 30.0
SHORT_LEASE_S: Final = 2.0
"""A lease shorter than decode engines take under load."""


class VllmPulled(Deployment):
    """One engine that reads prompts, one that decodes; both in one KV pool."""

    def __init__(
        self,
        schedule: Schedule,
        rng: Random,
        bugs: Collection[Bug],
        deliver: Deliver,
        *,
        prefill: Node,
        decode: Node,
    ) -> None:
        super().__init__(schedule, rng, bugs, deliver)
        self._prefill, self._decode = prefill, decode

    def serve(self, call: Call) -> Process:
        """Serve one call from its arrival to its end."""
        node = self._decode
        for line in log.received(call, self.now_s):
            node.say(line)
        yield QUEUE_S
        if len(call.prompt) >= min(self._prefill.limit_tokens, node.limit_tokens):
            return
        held: list[int] = []
        yield from self.reserve(self._prefill, call, len(call.prompt), held)
        pages: list[int] = []
        if held:
            self._prefill.kv.write(held, 0, call.prompt)
            self._prefill.begin(call)
            yield PREFILL_S_PER_TOKEN * len(call.prompt)
            self._prefill.end(call)
            yield from self.reserve(node, call, self.room_for(call), pages)
        if pages:
            yield from self._pulled(call, held, pages)
        elif held:
            self._prefill.kv.release(held)

    def _pulled(self, call: Call, held: list[int], pages: list[int]) -> Process:
        """Read what prefill holds, at once or late; its lease may be over by then."""
        is_late = self.rng.random() < LATE_CHANCE
        wait_s = self.rng.uniform(*LATE_S) if is_late else PULL_S
        lease_s = SHORT_LEASE_S if Bug.LEASE_EXPIRED in self.bugs else LEASE_S
        kv, is_expired = self._prefill.kv, wait_s > lease_s
        yield min(wait_s, lease_s)
        if is_expired:
            kv.release(held)
            self._prefill.say(log.lease_expired(call, self.now_s))
            self._prefill.counters["nixl_num_kv_expired_reqs_total"] += 1
            yield wait_s - lease_s
            self._prefill.say(log.read_too_late(call, self.now_s))
            self._prefill.counters["nixl_num_notifications_after_expiry_total"] += 1
        self._decode.kv.write(pages, 0, kv.read(held, len(call.prompt)))
        if not is_expired:
            kv.release(held)
        yield from self._decoded(call, pages)

    def _decoded(self, call: Call, pages: list[int]) -> Process:
        node = self._decode
        node.begin(call)
        yield from self.decode(node, call, pages, None)
        node.end(call)
        node.kv.release(pages)
        if call.finish_reason is None:
            node.say(log.aborted(call, self.now_s))
            return
        call.ended_s, call.told_prompt_tokens = self.now_s, len(call.prompt)
        for line in log.finished(call, self.now_s):
            node.say(line)
        self.deliver(call)
