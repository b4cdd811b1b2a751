"""Rules BW201 to BW207: what one engine reports is wrong, whatever its responses hold.

A state must last and a scrape alone proves nothing; a state that lasts, or a row of failures, is
one finding. Its id is that of rule, engine and beginning, by the engine's own clock.
"""

from typing import Final, NamedTuple

from detector.finding import Confidence, Finding, Severity
from detector.rules.engine_finding import AboutEngine
from detector.runtime.episodes import Failures, Sustained
from detector.runtime.evidence import (
    CLEAR_FAILURE,
    METADATA_MISMATCH,
    TRANSFER_FAILURE,
    UNRELEASED_KV,
    Happened,
)
from detector.runtime.increase import Increase
from detector.runtime.records import ESTIMATE, EXACT, SIGNAL_OF, Event, Sample
from detector.runtime.settings import RuntimeSettings

UNRELEASED: Final = "BW201"
DEGENERATE: Final = "BW207"
POOL_PRESSURE: Final = "BW205"
SMALL_POOL: Final = "BW206"

RULE_OF: Final = {
    UNRELEASED_KV: UNRELEASED,
    CLEAR_FAILURE: "BW202",
    METADATA_MISMATCH: "BW203",
    TRANSFER_FAILURE: "BW204",
}
"""The rule about each signal."""

_SAID: Final = {
    UNRELEASED_KV: "found KV memory that no request holds and nothing has released",
    CLEAR_FAILURE: "could not clear or release KV memory",
    METADATA_MISMATCH: "received KV or metadata that did not belong to the request",
    TRANSFER_FAILURE: "could not transfer KV memory",
}
_GRAVE: Final = frozenset({CLEAR_FAILURE, METADATA_MISMATCH})
LOG: Final = "log"
METRICS: Final = "metrics"
RESPONSES: Final = "responses"


class Noted(NamedTuple):
    """What came of a report: findings, and evidence for findings about content."""

    findings: tuple[Finding, ...] = ()
    evidence: tuple[Happened, ...] = ()


class _Rank:
    """What is remembered of one rank, which has a pool of its own."""

    def __init__(self, gap_ms: int) -> None:
        self.unreleased = Sustained(gap_ms)
        self.pressure = Sustained(gap_ms)
        self.small = Sustained(gap_ms)
        self.counters = {
            CLEAR_FAILURE: Increase(),
            METADATA_MISMATCH: Increase(),
            TRANSFER_FAILURE: Increase(),
        }
        self.last_ms: int | None = None


class EngineRules:
    """The rules about one engine; its samples and events come in the order of its clock."""

    def __init__(self, settings: RuntimeSettings, *, kv_pool: str, engine: str) -> None:
        self._settings = settings
        self._engine = engine
        self._about = AboutEngine(kv_pool, engine)
        self._ranks: dict[int | None, _Rank] = {}
        quiet_ms = settings.quiet_ms
        self._failures = {signal: Failures(quiet_ms) for signal in RULE_OF}
        self._failures[TRANSFER_FAILURE] = Failures(quiet_ms, settings.transfer_failures)
        self._degenerate = Failures(quiet_ms, settings.degenerate_responses, least_parties=2)

    def sample(self, sample: Sample) -> Noted:
        """Judge a sample. One that is older than the last of its rank says nothing new."""
        rank = self._ranks.setdefault(sample.rank, _Rank(self._settings.quiet_ms))
        at_ms = sample.sampled_at_ms
        if rank.last_ms is not None and at_ms <= rank.last_ms:
            return Noted()
        rank.last_ms = at_ms
        found = [self._unreleased(rank, sample), self._pressure(rank, sample)]
        evidence = self._unreleased_now(rank, sample)
        found.append(self._small(rank, sample))
        for signal, total in (
            (CLEAR_FAILURE, sample.clear_failures_total),
            (METADATA_MISMATCH, sample.metadata_mismatches_total),
            (TRANSFER_FAILURE, sample.transfer_failures_total),
        ):
            count = rank.counters[signal].add(total)
            if count:
                evidence.append(Happened(at_ms, signal, self._engine, METRICS, count))
                found.append(self._failed(signal, at_ms, METRICS, count))
        return Noted(tuple(one for one in found if one is not None), tuple(evidence))

    def event(self, event: Event) -> Noted:
        """Judge an event."""
        signal = SIGNAL_OF.get(event.kind)
        if signal is None:
            return Noted()
        found = self._failed(signal, event.at_ms, LOG, 1)
        return Noted(() if found is None else (found,))

    def response(
        self, at_ms: int, tenant: str, *, shingles: int, low_complexity: int
    ) -> Finding | None:
        """Judge how much of a response is degenerate; responses come in event order."""
        share = low_complexity / max(shingles, 1)
        enough = low_complexity >= self._settings.degenerate_shingles
        if not enough or share < self._settings.degenerate_share:
            return None
        since_ms = self._degenerate.add(at_ms, RESPONSES, party=tenant)
        if since_ms is None:
            return None
        count, tenants = self._degenerate.count, self._degenerate.parties
        return self._about.finding(
            DEGENERATE,
            since_ms,
            at_ms,
            f"Engine {self._engine} gave {count:,} degenerate responses to {tenants:,} tenants "
            f"within {_minutes(self._settings.quiet_ms)}: corrupted KV memory makes loops.",
            {"responses": count, "tenants": tenants},
        )

    def _unreleased_now(self, rank: _Rank, sample: Sample) -> list[Happened]:
        """Exact figures are evidence at once, estimates once they last: peers may still read."""
        tokens = sample.unreleased_tokens
        if tokens is None or not self._is_held(sample) or sample.running_requests != 0:
            return []
        if sample.unreleased_quality != EXACT and not rank.unreleased.told:
            return []
        return [Happened(sample.sampled_at_ms, UNRELEASED_KV, self._engine, METRICS, tokens)]

    def _is_held(self, sample: Sample) -> bool:
        least = self._settings.unreleased_share * (sample.pool_tokens or 0)
        known = sample.unreleased_quality in (EXACT, ESTIMATE)
        tokens = sample.unreleased_tokens or 0
        return known and tokens > max(least, self._settings.unreleased_tokens)

    def _unreleased(self, rank: _Rank, sample: Sample) -> Finding | None:
        """While requests run nothing is sure; unknown figures say nothing at all."""
        tokens, state, at_ms = sample.unreleased_tokens, rank.unreleased, sample.sampled_at_ms
        if tokens is None or sample.running_requests is None:
            return None
        if sample.running_requests:
            state.unclear()
            return None
        if not self._is_held(sample):
            state.off()
            return None
        exact = sample.unreleased_quality == EXACT
        lasting_ms = (
            self._settings.unreleased_exact_ms if exact else self._settings.unreleased_estimate_ms
        )
        since_ms = state.on(at_ms, lasting_ms=lasting_ms)
        if since_ms is None:
            return None
        how = "exactly" if exact else "an estimated"
        return self._about.finding(
            UNRELEASED,
            since_ms,
            at_ms,
            f"Engine {self._engine} has held {how} {tokens:,} tokens of KV memory for "
            f"{(at_ms - since_ms) / 1000:.0f} s with no request running.",
            {"unreleased_tokens": tokens, "pool_tokens": sample.pool_tokens},
            rank=sample.rank,
            confidence=Confidence.HIGH if exact else Confidence.MEDIUM,
        )

    def _pressure(self, rank: _Rank, sample: Sample) -> Finding | None:
        ratio, state, at_ms = sample.pool_usage_ratio, rank.pressure, sample.sampled_at_ms
        if ratio is None:
            return None
        if ratio <= self._settings.pool_usage:
            state.off() if ratio < self._settings.pool_usage_clear else state.unclear()
            return None
        since_ms = state.on(at_ms, lasting_ms=self._settings.pool_usage_ms)
        if since_ms is None:
            return None
        return self._about.finding(
            POOL_PRESSURE,
            since_ms,
            at_ms,
            f"The KV pool of engine {self._engine} has been more than "
            f"{self._settings.pool_usage:.0%} full for {(at_ms - since_ms) / 1000:.0f} s "
            f"({ratio:.0%} now): evictions and aborts are where memory changes hands.",
            {"pool_usage_percent": round(ratio * 100), "pool_tokens": sample.pool_tokens},
            rank=sample.rank,
        )

    def _small(self, rank: _Rank, sample: Sample) -> Finding | None:
        pool, context, at_ms = sample.pool_tokens, sample.context_tokens, sample.sampled_at_ms
        if pool is None or context is None:
            return None
        if pool >= context:
            rank.small.off()
            return None
        since_ms = rank.small.on(at_ms, lasting_ms=0)
        if since_ms is None:
            return None
        return self._about.finding(
            SMALL_POOL,
            since_ms,
            at_ms,
            f"The KV pool of engine {self._engine} holds {pool:,} tokens, but its context is "
            f"{context:,}: prompts between the two must be rejected, and were answered from "
            "foreign memory where the rejection was not honoured.",
            {"pool_tokens": pool, "context_tokens": context},
            rank=sample.rank,
        )

    def _failed(self, signal: str, at_ms: int, source: str, count: int) -> Finding | None:
        failures = self._failures[signal]
        since_ms = failures.add(at_ms, source, count)
        if since_ms is None:
            return None
        times = "once" if failures.count == 1 else f"{failures.count:,} times"
        within = "" if failures.count == 1 else f" within {_minutes(self._settings.quiet_ms)}"
        return self._about.finding(
            RULE_OF[signal],
            since_ms,
            at_ms,
            f"Engine {self._engine} {_SAID[signal]}, {times}{within} by its {source}.",
            {"count": failures.count},
            severity=Severity.HIGH if signal in _GRAVE else Severity.MEDIUM,
        )


def _minutes(span_ms: int) -> str:
    return f"{span_ms / 60_000:g} min"
