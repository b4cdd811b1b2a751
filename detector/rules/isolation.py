"""Rule BW105: a KV block was stored or reused under another tenant's salt or session.

It rests on block events that engines publish, needs no text and no learning. One finding stands for
two parties on one engine, until none came for the quiet time.
"""

from typing import Final, NamedTuple

import msgspec

from detector.finding import Confidence, Finding, Severity
from detector.rules.engine_finding import AboutEngine
from detector.runtime.episodes import Failures
from detector.runtime.records import Event
from detector.runtime.settings import RuntimeSettings

ISOLATION: Final = "BW105"

MAX_PAIRS: Final = 16_384
"""Pairs of parties whose episodes are remembered, about 500 bytes each; the first goes first."""


class _Crossing(NamedTuple):
    said: str
    is_broken: bool
    """Something was set that separates them, and did not."""


CROSSINGS: Final = {
    "salt_differs": _Crossing("the same KV block under another salt than that of", True),
    "parent_salt_differs": _Crossing("KV blocks behind a block of another salt, that of", True),
    "tenant_differs": _Crossing("a KV block of", False),
    "parent_tenant_differs": _Crossing("KV blocks behind a block of", False),
}
"""What is told of a block, by the detail of the event.

Salts that do not separate are broken isolation. Tenants that share a block while no salt tells them
apart are what engines do by default: true, less grave, and cured by salts.
"""


class IsolationRule:
    """The rule for one partition. Events of one engine come in the order of its clock."""

    def __init__(self, settings: RuntimeSettings) -> None:
        self._quiet_ms = settings.quiet_ms
        self._episodes: dict[tuple[str, ...], Failures] = {}

    def event(self, event: Event) -> Finding | None:
        """Take an event; return the finding if it begins an episode."""
        crossing = CROSSINGS.get(event.detail or "")
        if crossing is None or event.kind not in ("allocated", "reused"):
            return None
        pair = (event.detail or "", event.tenant or "", event.other_tenant or "")
        key = (event.kv_pool, event.engine, *pair)
        episode = self._episodes.setdefault(key, Failures(self._quiet_ms))
        if len(self._episodes) > MAX_PAIRS:
            del self._episodes[next(iter(self._episodes))]
        since_ms = episode.add(event.at_ms, "")
        if since_ms is None:
            return None
        verb = "reused" if event.kind == "reused" else "stored"
        found = AboutEngine(event.kv_pool, event.engine).finding(
            ISOLATION,
            since_ms,
            event.at_ms,
            f"On engine {event.engine} {_named(event.tenant)} {verb} {crossing.said} "
            f"{_named(event.other_tenant)}.",
            {pair[0]: episode.count},
            severity=Severity.HIGH if crossing.is_broken else Severity.MEDIUM,
            confidence=Confidence.HIGH if crossing.is_broken else Confidence.MEDIUM,
            about="\0".join(pair),
        )
        sink = msgspec.structs.replace(found.sink, tenant=pair[1])
        source = msgspec.structs.replace(found.source, tenant=pair[2])
        runtime = {**(found.runtime or {}), "block": event.block or "unknown"}
        return msgspec.structs.replace(found, sink=sink, source=source, runtime=runtime)


def _named(tenant: str | None) -> str:
    return "somebody" if tenant is None else f"tenant {tenant}"
