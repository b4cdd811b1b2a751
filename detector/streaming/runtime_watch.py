"""One partition's runtime: samples, events and requests become findings and evidence.

Event time alone decides. What is read again to rebuild a window is taken in and told only where
something that it rests on is news.
"""

from collections.abc import Iterable
from typing import Final

from detector.finding import Finding
from detector.ledger.ledger import KINDS
from detector.model import Kind, Sequence
from detector.rules.advisory import NO_ADVISORIES, KnownAdvisories, VersionRule
from detector.rules.blind import BlindRule, Lost
from detector.rules.configuration import ConfigurationRule
from detector.rules.contradiction import ANSWERED_ANYWAY, Contradictions
from detector.rules.isolation import IsolationRule
from detector.rules.joined import RuntimeJoin
from detector.rules.ledger import LedgerRule
from detector.rules.runtime import LOG, EngineRules, Noted
from detector.runtime.evidence import REJECTED_ANSWERED, Happened, PoolEvidence
from detector.runtime.limits import Limit, Limits
from detector.runtime.order import Ordered
from detector.runtime.records import BLIND, REJECTED, SIGNAL_OF, Event, RequestPart, Sample
from detector.runtime.requests import Request, RequestTable, SameId
from detector.runtime.settings import RuntimeSettings
from detector.settings import WindowSettings

MAX_ENGINES: Final = 4_096
"""Engines watched in one partition; the one that was heard of first goes first."""

MAX_BLOCK_EVENTS: Final = 8_192
"""Events about blocks held of one engine at most: five seconds of 400 requests a second."""

TIDY_MS: Final = 30_000
"""How often, in event time, what is too old is forgotten."""


_Report = tuple[Sample | None, Event | None]


class _Engine:
    """One engine: its reports in order, and the rules about it."""

    def __init__(
        self, settings: RuntimeSettings, known: KnownAdvisories, *, kv_pool: str, engine: str
    ) -> None:
        self.reports: Ordered[_Report] = Ordered(settings.hold_ms)
        self.blocks: Ordered[Event] = Ordered(
            settings.hold_ms, by_arrival=True, max_held=MAX_BLOCK_EVENTS
        )
        self.rules = EngineRules(settings, kv_pool=kv_pool, engine=engine)
        self.version = VersionRule(known, kv_pool=kv_pool, engine=engine)


class RuntimeWatch:
    """Takes records of a partition in any order of the topics; each topic's in its own.

    `is_news` is false for records that were finished before. Every method returns what is to be
    told now; ids are deterministic, so what is told twice is one finding.
    """

    def __init__(
        self,
        settings: RuntimeSettings,
        window: WindowSettings,
        *,
        advisories: KnownAdvisories = NO_ADVISORIES,
    ) -> None:
        self._settings = settings
        self._known = advisories
        self._engines: dict[tuple[str, str], _Engine] = {}
        self._configurations: dict[str, ConfigurationRule] = {}
        self._limits = Limits()
        self._requests = RequestTable(keep_ms=window.keep_ms)
        margin_ms = settings.join_margin_ms
        self._late_ms = window.grace_ms + settings.hold_ms
        evidence_ms = window.keep_ms + 2 * margin_ms
        self._evidence = PoolEvidence(keep_ms=evidence_ms)
        self._join = RuntimeJoin(self._evidence, margin_ms=margin_ms)
        self._contradictions = Contradictions(
            settings, window_ms=window.length_ms, limit_of=self._limit_of
        )
        self._blind = BlindRule(settings)
        self._isolation = IsolationRule(settings)
        self._ledger = LedgerRule(settings, end_of=self._requests.end_of)
        self._now_ms: int | None = None
        self._tidied_ms: int | None = None

    def sample(self, sample: Sample, *, is_news: bool) -> list[Finding]:
        """Take a runtime sample."""
        self._advance(sample.sampled_at_ms)
        engine = self._engine(sample.kv_pool, sample.engine)
        key = f"sample {'' if sample.rank is None else sample.rank}"
        due = engine.reports.push(sample.sampled_at_ms, key, (sample, None))
        return self._judged(engine, due, is_news=is_news)

    def event(self, event: Event, *, is_news: bool, at: str = "") -> list[Finding]:
        """Take an engine event; what it is evidence of counts at once.

        `at` is its place in the topic: without a request id nothing else tells it from another.
        """
        self._advance(event.at_ms)
        if event.kind == BLIND:
            cause, count = event.detail or BLIND, event.count or 1
            lost = Lost(event.kv_pool, event.engine, cause, count, event.at_ms)
            found = self._blind.lost(lost)
            return [] if found is None or not is_news else [found]
        told: list[Finding] = []
        if event.kind == REJECTED and event.request_id is not None:
            same = self._requests.reject(event, event.request_id, is_news=is_news)
            told += self._contradicted(same, is_news=is_news)
        if event.kind in KINDS:
            told += self._owned(event, is_news=is_news)
        signal = SIGNAL_OF.get(event.kind)
        if signal is None:
            return told
        piece = Happened(event.at_ms, signal, event.engine, LOG, 1)
        told += self._happened(event.kv_pool, (piece,), is_news=is_news)
        engine = self._engine(event.kv_pool, event.engine)
        key = f"event {event.kind} {event.request_id or at} {event.detail or ''}"
        due = engine.reports.push(event.at_ms, key, (None, event))
        return told + self._judged(engine, due, is_news=is_news)

    def lost(self, losses: Iterable[Lost], *, is_news: bool) -> list[Finding]:
        """Take what this worker could not see.

        What it could not see of what was finished before, the one before it may well have seen:
        that is nothing to tell, and no episode that goes on.
        """
        if not is_news:
            return []
        told = [self._blind.lost(one) for one in losses]
        return [one for one in told if one is not None]

    def parts(self, records: Iterable[RequestPart], *, is_news: bool) -> list[Finding]:
        """Take the parts of prompts and responses that one message held, tokens aside."""
        told: list[Finding] = []
        for record in records:
            self._advance(record.ended_at_ms)
            same = self._requests.add(record, is_news=is_news)
            told += self._contradicted(same, is_news=is_news)
            if record.kind == Kind.RESPONSE:
                self._ledger.ended(
                    record.kv_pool, record.request_id, record.tenant, record.ended_at_ms
                )
        return told

    def observed(self, sequence: Sequence, *, shingles: int, low_complexity: int) -> list[Finding]:
        """Take a sequence whose turn in event order it is, with how much of it is degenerate."""
        if sequence.kind is not Kind.RESPONSE or sequence.part:
            return []
        rules = self._engine(sequence.kv_pool, sequence.engine).rules
        found = rules.response(
            sequence.ended_at_ms, sequence.tenant, shingles=shingles, low_complexity=low_complexity
        )
        return [] if found is None else [found]

    @property
    def requests_known(self) -> int:
        """Request ids remembered."""
        return len(self._requests)

    def idle(self) -> list[Finding]:
        """Judge what waits for its turn: an engine that fell silent may never report again."""
        told: list[Finding] = []
        for engine in list(self._engines.values()):
            told += self._judged(engine, engine.reports.drain(), is_news=True)
            told += self._of_blocks(engine.blocks.drain(), is_news=True)
        return told + self._ledger.due(self._now)

    def joined(self, finding: Finding, *, is_news: bool) -> Finding:
        """Return a content finding with what is known to have happened around it."""
        return self._join.joined(finding, is_news=is_news)

    def rebuilt(self) -> list[Finding]:
        """Return what is to be told once the window is rebuilt."""
        return self._join.rebuilt(now_ms=self._now)

    def _owned(self, event: Event, *, is_news: bool) -> list[Finding]:
        """Take what happened to a KV block, or to a request that may hold some."""
        engine = self._engine(event.kv_pool, event.engine)
        named = (event.kind, event.request_id, event.tenant, event.block, event.detail)
        due = engine.blocks.push(event.at_ms, "\0".join(one or "" for one in named), event)
        return self._of_blocks(due, is_news=is_news)

    def _of_blocks(self, due: Iterable[Event], *, is_news: bool) -> list[Finding]:
        """Judge events about blocks whose turn it is."""
        told: list[Finding] = []
        for event in due:
            crossing = self._isolation.event(event)
            told += [*self._ledger.event(event), *(() if crossing is None else (crossing,))]
        return told if is_news else []

    def _judged(self, engine: _Engine, due: Iterable[_Report], *, is_news: bool) -> list[Finding]:
        """Judge the reports of an engine whose turn it is; a late one's turn is at once."""
        told: list[Finding] = []
        for sample, event in due:
            if sample is not None:
                noted = engine.rules.sample(sample)
                told += self._noted(sample.kv_pool, noted, is_news=is_news)
                latent = self._latent(engine, sample)
                told += latent if is_news else []
                if self._limits.add(sample, is_news=is_news):
                    for same in self._requests.of_pool(sample.kv_pool):
                        told += self._contradicted(same, is_news=is_news)
            if event is not None:
                noted = engine.rules.event(event)
                told += self._noted(event.kv_pool, noted, is_news=is_news)
        return told

    def _latent(self, engine: _Engine, sample: Sample) -> list[Finding]:
        """Judge what needs no traffic: the version of an engine, and what it is configured to."""
        outdated = engine.version.sample(sample)
        misfits = self._configuration(sample.kv_pool).sample(sample)
        return misfits if outdated is None else [outdated, *misfits]

    def _noted(self, kv_pool: str, noted: Noted, *, is_news: bool) -> list[Finding]:
        raised = self._happened(kv_pool, noted.evidence, is_news=is_news)
        return [*(noted.findings if is_news else ()), *raised]

    def _contradicted(self, same: SameId, *, is_news: bool) -> list[Finding]:
        told: list[Finding] = []
        for finding, rests_on_news in self._contradictions.judge(same, now_ms=self._now):
            if rests_on_news:
                told.append(finding)
            if finding.rule in ANSWERED_ANYWAY:
                piece = Happened(
                    finding.observed_at_ms, REJECTED_ANSWERED, finding.engine, "requests", 1
                )
                told += self._happened(finding.kv_pool, (piece,), is_news=is_news or rests_on_news)
        return told

    def _happened(
        self, kv_pool: str, pieces: Iterable[Happened], *, is_news: bool
    ) -> list[Finding]:
        added = [self._evidence.add(kv_pool, piece, is_news=is_news) for piece in pieces]
        if not any(added):
            return []
        return self._join.happened(kv_pool, is_news=is_news, now_ms=self._now)

    def _limit_of(self, request: Request) -> Limit | None:
        margin_ms = self._settings.join_margin_ms
        last_ms = request.started_at_ms if request.ended_at_ms is None else request.ended_at_ms
        return self._limits.of_request(
            request.kv_pool, request.engine, request.started_at_ms - margin_ms, last_ms + margin_ms
        )

    def _engine(self, kv_pool: str, name: str) -> _Engine:
        key = (kv_pool, name)
        engine = self._engines.get(key)
        if engine is None:
            engine = _Engine(self._settings, self._known, kv_pool=kv_pool, engine=name)
            self._engines[key] = engine
            if len(self._engines) > MAX_ENGINES:
                del self._engines[next(iter(self._engines))]
        return engine

    def _configuration(self, kv_pool: str) -> ConfigurationRule:
        rule = self._configurations.get(kv_pool)
        if rule is None:
            rule = ConfigurationRule(kv_pool, gap_ms=self._settings.quiet_ms)
            self._configurations[kv_pool] = rule
            if len(self._configurations) > MAX_ENGINES:
                del self._configurations[next(iter(self._configurations))]
        return rule

    @property
    def _now(self) -> int:
        return self._now_ms or 0

    def _advance(self, at_ms: int) -> None:
        """Move event time on, and forget now and then what is too old."""
        self._now_ms = at_ms if self._now_ms is None else max(self._now_ms, at_ms)
        if self._tidied_ms is not None and self._now_ms - self._tidied_ms < TIDY_MS:
            return
        self._tidied_ms = self._now_ms
        self._requests.expire(self._now_ms)
        self._evidence.expire(self._now_ms)
        self._join.expire(self._now_ms, late_ms=self._late_ms)
