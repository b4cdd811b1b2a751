"""Rule BW208: KV memory was transferred, reused or kept against who owns it.

Each violation has the id of request, block and kind, so that repeats are one finding. Transfers
that name nobody are told as an episode of their engine.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import xxhash

from detector.finding import NO_OVERLAP, Confidence, Finding, Party, Severity
from detector.ledger.ledger import ENDS, EndOf, Ledger
from detector.ledger.violation import Breach, Holder, Violation
from detector.model import Kind
from detector.rules.contradiction import OTHER_REQUEST
from detector.rules.engine_finding import AboutEngine
from detector.rules.isolation import CROSSINGS
from detector.runtime.episodes import Failures
from detector.runtime.records import Event
from detector.runtime.settings import RuntimeSettings

LEDGER: Final = "BW208"

MAX_ENGINES: Final = 4_096
"""Engines whose unlabelled transfers are counted; the one that was heard of first goes first."""

_GRAVE: Final = frozenset(
    {Breach.TRANSFER_OTHER_TENANT, Breach.REUSE_OTHER_TENANT, Breach.REUSE_AFTER_RELEASE}
)
"""Whoever reads such memory reads what may be another tenant's."""

_SAID: Final = {
    Breach.TRANSFER_OTHER_TENANT: "got KV memory of {origin} transferred",
    Breach.REUSE_OTHER_TENANT: "reused KV memory of {origin}",
    Breach.REUSE_AFTER_RELEASE: "reused a KV block that {origin} had released and that was invalid",
    Breach.REUSE_NOT_APPROVED: "reused a KV block of {origin} whose reuse was not approved",
    Breach.REUSE_PAST_TTL: "reused a KV block of {origin} after its time to live",
    Breach.NOT_RELEASED: "has ended and not released its KV memory in time",
}


class LedgerRule:
    """The rule for one partition. Events of one engine come in the order of its clock."""

    def __init__(self, settings: RuntimeSettings, *, end_of: EndOf) -> None:
        self._quiet_ms = settings.quiet_ms
        self._ledger = Ledger(
            release_ms=settings.release_ms, max_blocks=settings.ledger_blocks, end_of=end_of
        )
        self._unlabelled: dict[tuple[str, str], Failures] = {}

    def event(self, event: Event) -> list[Finding]:
        """Take an event."""
        if event.kind in ENDS and event.detail in OTHER_REQUEST:
            return []
        if event.kind in ("allocated", "reused") and event.detail in CROSSINGS:
            return []
        return list(self._findings(self._ledger.event(event)))

    def ended(self, kv_pool: str, request_id: str, tenant: str, at_ms: int) -> None:
        """Hear that a response has ended."""
        self._ledger.ended(kv_pool, request_id, tenant, at_ms)

    def due(self, now_ms: int) -> list[Finding]:
        """Return what is overdue, when nothing more is there to read."""
        return list(self._findings(self._ledger.due(now_ms)))

    def _findings(self, violations: Iterable[Violation]) -> Iterator[Finding]:
        for one in violations:
            if one.breach is Breach.TRANSFER_UNLABELLED:
                found = self._without_label(one)
                if found is not None:
                    yield found
            else:
                yield _finding(one)

    def _without_label(self, one: Violation) -> Finding | None:
        key = (one.kv_pool, one.engine)
        episode = self._unlabelled.setdefault(key, Failures(self._quiet_ms))
        if len(self._unlabelled) > MAX_ENGINES:
            del self._unlabelled[next(iter(self._unlabelled))]
        since_ms = episode.add(one.at_ms, "")
        if since_ms is None:
            return None
        absent = [name.replace("_", " ") for name, value in _label(one.holder) if value is None]
        return AboutEngine(one.kv_pool, one.engine).finding(
            LEDGER,
            since_ms,
            one.at_ms,
            f"Engine {one.engine} transferred KV memory without {', '.join(absent)}: whoever "
            "receives it cannot tell whose it is.",
            {one.breach.value: episode.count},
            about=one.breach.value,
        )


def _label(holder: Holder) -> Iterator[tuple[str, object]]:
    yield "tenant", holder.tenant
    yield "request_id", holder.request_id
    yield "creation_time", holder.created_at_ms


def _finding(one: Violation) -> Finding:
    holder, origin = one.holder, one.origin or one.holder
    begun_ms = "" if holder.created_at_ms is None else str(holder.created_at_ms)
    block = "" if one.breach is Breach.NOT_RELEASED else one.block or str(one.at_ms)
    who = (holder.tenant or "", holder.request_id or "", begun_ms)
    name = "\0".join((LEDGER, one.kv_pool, one.breach.value, *who, block))
    said = _SAID[one.breach].format(origin=_named(one.origin, "another request"))
    numbers = {key: f"{value:,}" for key, value in one.numbers.items()}
    return Finding(
        id=xxhash.xxh3_128_hexdigest(name.encode()),
        rule=LEDGER,
        severity=Severity.HIGH if one.breach in _GRAVE else Severity.MEDIUM,
        confidence=Confidence.HIGH,
        kv_pool=one.kv_pool,
        engine=one.engine,
        model="",
        observed_at_ms=one.at_ms,
        detected_at_ms=one.at_ms,
        sink=_party(holder, one.at_ms),
        source=_party(origin, one.at_ms),
        other_sources=(),
        evidence=NO_OVERLAP,
        explanation=f"On engine {one.engine} {_named(holder, 'a request')} {said}.",
        runtime=numbers if one.block is None else {**numbers, "block": one.block},
    )


def _party(holder: Holder, at_ms: int) -> Party:
    created_ms = at_ms if holder.created_at_ms is None else holder.created_at_ms
    return Party(
        tenant=holder.tenant or "", request_id=holder.request_id or "", kind=Kind.PROMPT.value,
        started_at_ms=created_ms, ended_at_ms=at_ms,
    )  # fmt: skip


def _named(holder: Holder | None, unknown: str) -> str:
    if holder is None:
        return unknown
    request = f"request {holder.request_id}" if holder.request_id else "a request"
    return f"{request} of tenant {holder.tenant}" if holder.tenant else request
