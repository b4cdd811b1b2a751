"""The scenarios: which deployment has which fault, and whose log of requests is read."""

from dataclasses import dataclass, field, replace
from typing import Final

from tests.fakes.cluster.bugs import Bug
from tests.fakes.cluster.simulation import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run. Requests are read from the log of the engine, or of the gateway."""

    topology: Topology = field(default_factory=Topology)
    over_long: int = 0
    from_gateway: bool = False


BASE: Final = Topology()

SMALL: Final = Topology(prefill_tokens=6_144, context_tokens=16_384)
"""A prefill pool that is smaller than the context, beside a larger decode pool."""

ROOMY: Final = Topology(decode_tokens=65_536)
"""A decode pool that does not run full of what is not released."""


def _sglang(bug: Bug, *, base: Topology = BASE, version: str = "", over_long: int = 0) -> Scenario:
    return Scenario(topology=replace(base, bugs={bug}, version=version), over_long=over_long)


def _vllm(bug: Bug, *, kind: str = "vllm", base: Topology = BASE, version: str = "") -> Scenario:
    return Scenario(topology=replace(base, kind=kind, bugs={bug}, version=version))


def _gateway(bug: Bug) -> Scenario:
    return Scenario(topology=Topology(kind="vllm", bugs={bug}), from_gateway=True)


SCENARIOS: Final = {
    "clean-sglang": Scenario(),
    "clean-vllm": Scenario(topology=Topology(kind="vllm")),
    "clean-vllm-pulled": Scenario(topology=Topology(kind="vllm-pulled")),
    "rejected": Scenario(topology=SMALL, over_long=5),
    Bug.STALE_AFTER_REJECT: _sglang(
        Bug.STALE_AFTER_REJECT, version="0.5.19", over_long=5, base=SMALL
    ),
    Bug.OVER_LIMIT_ANSWERED: Scenario(
        topology=Topology(
            kind="vllm",
            bugs={Bug.OVER_LIMIT_ANSWERED},
            decode_tokens=12_288,
            context_tokens=4_096,
        ),
        over_long=5,
    ),
    Bug.ABORT_REPORTED_AS_LENGTH: _sglang(Bug.ABORT_REPORTED_AS_LENGTH),
    Bug.FREED_UNDER_WRITE: Scenario(
        topology=Topology(bugs={Bug.FREED_UNDER_WRITE}, version="0.5.18", slow_share=0.5)
    ),
    Bug.DEFERRED_RELEASE_TIMEOUT: _sglang(Bug.DEFERRED_RELEASE_TIMEOUT),
    Bug.FREED_WHILE_DECODING: _sglang(Bug.FREED_WHILE_DECODING),
    Bug.BATCH_ROW_REUSED: _vllm(Bug.BATCH_ROW_REUSED, version="0.20.0"),
    Bug.CACHE_KEY_WITHOUT_TENANT: _vllm(Bug.CACHE_KEY_WITHOUT_TENANT),
    Bug.CACHE_KEY_COLLISION: _vllm(Bug.CACHE_KEY_COLLISION),
    Bug.CONNECTOR_MIS_TRANSFER: _sglang(Bug.CONNECTOR_MIS_TRANSFER),
    Bug.CHECKSUM_MISMATCH: _sglang(Bug.CHECKSUM_MISMATCH),
    Bug.METADATA_MISMATCH: _sglang(Bug.METADATA_MISMATCH),
    Bug.LEASE_EXPIRED: _vllm(Bug.LEASE_EXPIRED, kind="vllm-pulled"),
    Bug.GATEWAY_CACHE_WITHOUT_TENANT: _gateway(Bug.GATEWAY_CACHE_WITHOUT_TENANT),
    Bug.SEMANTIC_CACHE_WITHOUT_TENANT: _gateway(Bug.SEMANTIC_CACHE_WITHOUT_TENANT),
    Bug.RESPONSE_SWAPPED: _gateway(Bug.RESPONSE_SWAPPED),
    Bug.CONNECTION_OUT_OF_STEP: _gateway(Bug.CONNECTION_OUT_OF_STEP),
    Bug.UNRELEASED_AFTER_ABORT: _sglang(Bug.UNRELEASED_AFTER_ABORT, base=ROOMY),
    "unreleased-after-abort-vllm": _vllm(Bug.UNRELEASED_AFTER_ABORT, base=ROOMY),
    Bug.UNRELEASED_AFTER_REJECT: _sglang(
        Bug.UNRELEASED_AFTER_REJECT,
        over_long=2,
        base=replace(SMALL, decode_tokens=ROOMY.decode_tokens),
    ),
    Bug.LEAK_REPORTED: _sglang(Bug.LEAK_REPORTED, base=ROOMY),
    Bug.POOL_CREEP: _sglang(Bug.POOL_CREEP, base=ROOMY),
    Bug.DOUBLE_FREE: _sglang(Bug.DOUBLE_FREE),
    Bug.USAGE_MISMATCH: _sglang(Bug.USAGE_MISMATCH),
    Bug.REQUEST_ID_REUSED: _sglang(Bug.REQUEST_ID_REUSED),
    Bug.DEGENERATE_OUTPUT: _sglang(Bug.DEGENERATE_OUTPUT),
    Bug.TRANSFER_FAILURES: _sglang(Bug.TRANSFER_FAILURES),
    Bug.CORRUPTED_STATE: _sglang(Bug.CORRUPTED_STATE),
}
"""By name; the names in the expectations are these."""
