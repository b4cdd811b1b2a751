"""Runs one simulated deployment over a load, with the faults asked for, and records it."""

from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.fakes.cluster import sglang_log
from tests.fakes.cluster.bugs import Bug
from tests.fakes.cluster.call import Call
from tests.fakes.cluster.deployment import Deployment
from tests.fakes.cluster.exposition import sglang_metrics, vllm_metrics
from tests.fakes.cluster.gateway import Gateway
from tests.fakes.cluster.kv_publisher import KvPublisher
from tests.fakes.cluster.node import Node
from tests.fakes.cluster.recording import Recording, Scrape
from tests.fakes.cluster.schedule import Process, Schedule
from tests.fakes.cluster.sglang_pd import SglangPd
from tests.fakes.cluster.traffic import Load, Sessions, calls
from tests.fakes.cluster.vllm_pulled import VllmPulled
from tests.fakes.cluster.vllm_unified import VllmUnified

KV_POOL: Final = "pool-0"
COUNTERS: Final[dict[str, tuple[str, ...]]] = {
    "sglang-pd": ("num_transfer_failed_reqs_total", "num_bootstrap_failed_reqs_total"),
    "vllm": (),
    "vllm-pulled": ("nixl_num_kv_expired_reqs_total", "nixl_num_notifications_after_expiry_total"),
}
"""Counters of the connectors, which are there from the start."""

REUSED_ID_CHANCE: Final = 0.1
REUSED_WITHIN: Final = 5
"""Request ids that clients send twice: a counter that starts anew, say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """How a deployment is built. The sizes are small, so that pages change hands within minutes.

    `kind` is sglang-pd, vllm or vllm-pulled; without a `version` it is the newest. `quiet_s`
    without requests follow the load. `slow_share` of the transfers are slow, and clients often do
    not wait for those.
    """

    kind: str = "sglang-pd"
    prefill_tokens: int = 16_384
    decode_tokens: int = 32_768
    context_tokens: int = 8_192
    newest_first: bool = True
    version: str = ""
    scrape_s: float = 5.0
    quiet_s: float = 120.0
    slow_share: float = 0.06
    gateway_skew_s: float = 0.0
    bugs: Collection[Bug] = field(default_factory=frozenset)


class Simulation:
    """One run; `seed` decides everything that the load does not."""

    def __init__(self, topology: Topology, load: Load, folder: Path, *, seed: int) -> None:
        self._topology, self._load = topology, load
        self._rng = Random(seed)
        self._schedule = Schedule()
        self._sessions = Sessions()
        self._bugs = frozenset(topology.bugs)
        self._stack = ExitStack()
        self._gateway = Gateway(
            folder / "gateway.jsonl", self._rng, self._bugs, kv_pool=KV_POOL,
            skew_s=topology.gateway_skew_s,
        )  # fmt: skip
        self._stack.callback(self._gateway.close)
        self._nodes = self._make_nodes(folder)
        self._recording = Recording(
            kind="sglang" if topology.kind == "sglang-pd" else "vllm",
            kv_pool=KV_POOL,
            requests=self._nodes[-1].path,
            gateway=self._gateway.path,
            logs={node.name: node.path for node in self._nodes},
        )
        self._deployment = self._deploy()
        self._recent: list[str] = []

    def run(self) -> Recording:
        """Let the load pass, and the quiet time after it."""
        with self._stack:
            end_s = self._load.traffic.settings.duration_s + self._topology.quiet_s
            self._schedule.start(self._arrivals())
            self._schedule.start(self._scrapes(end_s))
            self._schedule.run(end_s)
        return self._recording

    def _make_nodes(self, folder: Path) -> list[Node]:
        """Return the engines; the last one answers."""
        topology = self._topology
        sizes = {"prefill": topology.prefill_tokens, "decode": topology.decode_tokens}
        if topology.kind == "vllm":
            sizes = {"engine": topology.decode_tokens}
        return [
            self._stack.enter_context(
                Node(
                    name, folder / f"{name}.log", pool_tokens=tokens,
                    context_tokens=topology.context_tokens,
                    counters=COUNTERS[topology.kind],
 newest_first=topology.newest_first,
                )
            )
            for name, tokens in sizes.items()
        ]  # fmt: skip

    def _deploy(self) -> Deployment:
        schedule, rng, bugs, nodes = self._schedule, self._rng, self._bugs, self._nodes
        if self._topology.kind == "sglang-pd":
            return SglangPd(
                schedule, rng, bugs, self._delivered, prefill=nodes[0], decode=nodes[1],
                slow_share=self._topology.slow_share,
            )  # fmt: skip
        if self._topology.kind == "vllm-pulled":
            return VllmPulled(
                schedule, rng, bugs, self._delivered, prefill=nodes[0], decode=nodes[1]
            )
        publisher = KvPublisher(
            nodes[0].name,
            self._recording.published,
            with_salt=Bug.CACHE_KEY_WITHOUT_TENANT not in bugs,
        )
        return VllmUnified(schedule, rng, bugs, self._delivered, node=nodes[0], publisher=publisher)

    def _arrivals(self) -> Process:
        for call in calls(self._load, self._rng):
            yield max(0.0, call.arrives_s - self._schedule.now_s)
            call.prompt = self._sessions.asked_again(call.session, call.prompt)
            self._name(call)
            if not self._gateway.cached(call):
                self._schedule.start(self._served(call))

    def _served(self, call: Call) -> Process:
        yield from self._deployment.serve(call)
        if call.finish_reason is None and not call.is_left(self._schedule.now_s):
            self._gateway.rejected(call, 400)

    def _name(self, call: Call) -> None:
        """Let some clients send an id that was used shortly before."""
        is_faulty = Bug.REQUEST_ID_REUSED in self._bugs and bool(self._recent)
        if is_faulty and self._rng.random() < REUSED_ID_CHANCE:
            call.request_id = self._rng.choice(self._recent)
        self._recent = [*self._recent[-REUSED_WITHIN:], call.request_id]

    def _delivered(self, call: Call) -> None:
        self._gateway.deliver(call)
        self._sessions.answered(call.session, call.own, tuple(call.output[: -call.stops or None]))

    def _scrapes(self, until_s: float) -> Process:
        """Scrape every engine, and let it look for leaks while it is idle."""
        while self._schedule.now_s < until_s:
            for node in self._nodes:
                self._recording.scrapes.append(self._scrape(node))
                if Bug.LEAK_REPORTED in self._bugs and not node.running and node.kv.used_tokens:
                    node.say(self._leak(node))
            yield self._topology.scrape_s

    def _leak(self, node: Node) -> str:
        kv = node.kv
        free = kv.total_tokens - kv.used_tokens - kv.evictable_tokens
        return sglang_log.leak(
            self._schedule.now_s, total=kv.total_tokens, available=free,
            evictable=kv.evictable_tokens,
        )  # fmt: skip

    def _scrape(self, node: Node) -> Scrape:
        is_vllm = self._recording.kind == "vllm"
        now = node.figures()
        documents: dict[str, Any] = {
            "/v1/models": {"data": [{"id": now.model, "max_model_len": node.context_tokens}]}
        }
        if is_vllm:
            documents["/version"] = {"version": self._topology.version or "0.33.0"}
        else:
            documents["/server_info"] = {
                "version": self._topology.version or "0.5.23",
                "context_length": node.context_tokens,
                "max_total_num_tokens": node.kv.total_tokens,
                "max_req_input_len": node.limit_tokens,
                "disaggregation_mode": node.name,
            }
        page = vllm_metrics(now) if is_vllm else sglang_metrics(now)
        return Scrape(self._schedule.now_s, node.name, page, documents)
