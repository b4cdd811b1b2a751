"""The whole detection in one composition: sequences in, findings out, no I/O and no clock."""

import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from detector.finding import Confidence, Finding
from detector.index.copies import CopyIndex
from detector.index.density import PoolDensity
from detector.index.memory import Memory
from detector.index.postings import Hits, Positions, PostingIndex
from detector.index.selection import sampling_of
from detector.index.sequences import SequenceStore
from detector.index.showings import Taint
from detector.index.tenant_table import mark_of
from detector.kernels.hits import distinct_of
from detector.kernels.intake import learn_shown, take
from detector.kernels.shingle import shingles
from detector.match.allow_list import AllowList
from detector.match.attribution import Attribution, Attributor
from detector.match.boundary import party_name
from detector.match.confidence import confidence, thresholds
from detector.match.copies import Copies
from detector.match.digests import Digester
from detector.match.judge import Judge
from detector.match.response_sketches import ResponseSketches
from detector.match.sessions import SessionRepeats
from detector.match.sink import Sink, SinkHits
from detector.match.verdict import Verdict
from detector.model import Kind, Sequence
from detector.rules.content import Match, content_finding
from detector.settings import DetectionSettings
from detector.sketch.batch import Prepared
from detector.sketch.shingle import Keys, Mask

Shingled = tuple[Keys, Mask]
"""The keys of a sequence's shingles, and which of them are of low complexity."""

RENUMBER_AT = 1 << 22
"""Positions from which on gone ones are given up: half of what the index can number."""

RENUMBER_SHARE = 0.25
"""Share of the positions that is gone by then: each renumbering reads the whole index."""


@dataclass(slots=True)
class DetectorStats:
    """What the detector has done so far; counts of responses, shingles and tokens."""

    tokens: int = 0
    responses: int = 0
    response_shingles: int = 0
    overlapping_shingles: int = 0
    unexplained_shingles: int = 0
    findings: int = 0


class Detector:
    """Finds cross-tenant overlap in sequences that come in event order (see `Sequencer`).

    `warm` teaches it the past without judging; `observe` judges and returns the new findings, at
    most one per sink request and source tenant unless a later one is surer. Detectors of different
    pools may share a `memory`; `index_bytes` is this one's part of the index's byte budget.
    `sketches` is told of every response that is judged; a `digester` makes what is kept of the
    shingles that a finding rests on.
    """

    def __init__(
        self,
        settings: DetectionSettings,
        *,
        allowed: AllowList | None = None,
        memory: Memory | None = None,
        index_bytes: int | None = None,
        sketches: ResponseSketches | None = None,
        digester: Digester | None = None,
    ) -> None:
        self._settings = settings
        self._sketches = sketches
        self._allowed = AllowList() if allowed is None else allowed
        self._digester = digester
        self._memory = Memory(settings.commonness) if memory is None else memory
        self._seen, self._tainted = self._memory.seen, self._memory.tainted
        self._sampling, self._window_ms = sampling_of(settings.index), settings.window.length_ms
        self._store = SequenceStore()
        nbytes = index_bytes or settings.index.memory_bytes
        self._index = PostingIndex(self._store, memory_bytes=nbytes)
        self._judge = Judge(
            settings.filter,
            store=self._store,
            index=self._index,
            seen=self._seen,
            allowed=self._allowed,
        )
        self._attributor = Attributor(
            store=self._store,
            index=self._index,
            tainted=self._tainted,
            window_ms=self._window_ms,
            sampled_from=max(self._sampling.window, 1),
        )
        self._copies = Copies(
            settings.copies,
            store=self._store,
            index=CopyIndex(settings.copies, self._store, keep_ms=settings.window.keep_ms),
            explanations=self._judge.explanations,
            window_ms=self._window_ms,
        )
        self._density = PoolDensity(window_ms=self._window_ms)
        self._sessions = SessionRepeats(keep_ms=settings.window.keep_ms)
        self._reported: dict[str, int] = {}
        self._reported_order: deque[tuple[int, str]] = deque()
        self._now_ms = -sys.maxsize
        self._key_id = ""
        self.stats = DetectorStats()
        self.last_shingles = self.last_low_complexity = 0
        """Shingles of the sequence observed last, and how many of them are of low complexity."""

    @property
    def learning(self) -> bool:
        """True while too little is remembered to know what is common.

        That is so under the secret of the text observed last; findings go by that of their sink.
        """
        return self._is_learning(self._key_id)

    @property
    def explained(self) -> dict[str, int]:
        """Matched shingles explained so far, by reason."""
        return self._judge.explained

    @property
    def live_postings(self) -> int:
        """Postings of the window; counting them reads the whole index."""
        return self._index.live_postings(self._expired())

    @property
    def postings(self) -> int:
        """Postings in the index; those that have expired count until they are swept."""
        return self._index.rows

    @property
    def index_bytes(self) -> int:
        """Bytes of the window's index."""
        return self._index.nbytes

    @property
    def evicted_sequences(self) -> int:
        """Sequences given up inside the window for want of memory: lost recall."""
        return self._index.evicted_sequences

    def start_reporting(self) -> None:
        """Begin after the rebuilding of a window: what it found and counted went nowhere.

        Every finding is news again; runs that a session was told of stay told.
        """
        self._reported.clear()
        self._reported_order.clear()
        self._judge.forget_counts()
        self.stats = DetectorStats()

    def warm(self, sequence: Sequence, prepared: Prepared | None = None) -> None:
        """Learn from past traffic: commonness and own history, no judgement, no window."""
        self._hear(sequence, sequence.started_at_ms)
        self._take(sequence, self._party(sequence), prepared)

    def observe(self, sequence: Sequence, prepared: Prepared | None = None) -> list[Finding]:
        """Compare one sequence with the window, in both directions, and add it to the window.

        `prepared` are the sequence's shingles if a backend has made them, else they are made here.
        """
        self._advance(sequence)
        self.stats.tokens += len(sequence.token_hashes)
        party = self._party(sequence)
        self._make_room(len(sequence.token_hashes))
        made, positions, pool_keys, low, common = self._take(sequence, party, prepared)
        at = self._store.add(sequence, party)
        hits = self._index.observe(pool_keys, positions, at, window_ms=self._window_ms)
        count = len(made[0])
        self.last_shingles, self.last_low_complexity = count, low
        self._density.add(sequence, count - low)
        if sequence.kind is Kind.RESPONSE:
            self._count(count, count - low, len(positions) + common, common, hits)
        near = self._copies.meet(at, now_ms=self._now_ms)
        is_sketched = self._sketches is not None and sequence.kind is Kind.RESPONSE
        if not len(hits.at) and not near and not is_sketched:
            return []
        findings = self._findings(self._sink(at, made), positions, hits, near)
        self.stats.findings += len(findings)
        return findings

    def _findings(
        self, sink: Sink, positions: Positions, hits: Hits, near: list[int]
    ) -> list[Finding]:
        """Judge what a sequence has met, in both directions; `positions` are those indexed."""
        if self._sketches is not None and sink.sequence.kind is Kind.RESPONSE:
            explained = sink.common(positions) | self._allowed.holds(sink.keys)
            self._sketches.add(sink, explained=explained, learning=self.learning)
        judged = [(each, self._judge.judge(*each)) for each in self._sinks(sink, hits)]
        findings = [one for (each, _), verdicts in judged for one in self._report(each, verdicts)]
        for (each, _), verdicts in judged:
            self._taint(each, verdicts)
        findings += self._copied(sink, near)
        return findings

    def _sinks(self, current: Sink, hits: Hits) -> Iterator[tuple[Sink, SinkHits]]:
        """Yield every response to judge: the current one and earlier ones it may have fed."""
        received = hits.received
        if received.all():
            if len(received):
                yield current, SinkHits(hits.other, hits.other_at, hits.at)
            return
        if received.any():
            mine = SinkHits(hits.other[received], hits.other_at[received], hits.at[received])
            yield current, mine
        for other in np.unique(hits.other[~received]).tolist():
            given = ~received & (hits.other == other)
            source = np.full(int(given.sum()), current.at)
            yield self._sink(other), SinkHits(source, hits.at[given], hits.other_at[given])

    def _report(self, sink: Sink, verdicts: list[Verdict]) -> Iterator[Finding]:
        for attribution in self._attributor.attribute(sink, verdicts):
            finding = self._finding(sink, attribution)
            if finding is not None:
                yield finding

    def _copied(self, current: Sink, near: list[int]) -> Iterator[Finding]:
        """Yield a finding for each edited copy that no run has told already."""
        for at, sources in self._copies.pairs(current.at, near):
            sink = current if at == current.at else self._sink(at)
            attribution = self._copies.judge(sink, sources)
            if attribution is not None:
                self._copies.taint(at)
                finding = self._finding(sink, attribution)
                if finding is not None:
                    yield finding

    def _taint(self, sink: Sink, verdicts: list[Verdict]) -> None:
        """Take unexplained shingles out of the memory; the first origin stays their origin."""
        since_ms = sink.sequence.started_at_ms
        if verdicts:
            self._copies.taint(sink.at)
        for verdict in verdicts:
            self.stats.unexplained_shingles += len(verdict.keys)
            origin = int(self._store.owners[verdict.source]) >> 1
            found_ms = self._memory.now_ms
            self._memory.taint(Taint(verdict.keys, origin, sink.party, since_ms, found_ms))

    def _finding(self, sink: Sink, attribution: Attribution) -> Finding | None:
        best = attribution.verdict
        pool = sink.sequence.kv_pool
        limits = thresholds(
            self._settings.filter,
            live_shingles=self._density.shingles(pool),
            learning=self._is_learning(sink.sequence.key_id),
        )
        is_copy = best.similarity is not None
        sure = confidence(best.tokens, limits, is_copy=is_copy)
        if sure is None:
            return None
        if any(map(self._store.may_lack_prompt, (sink.sequence, attribution.sources[0]))):
            sure = Confidence.LOW  # what the prompt would explain, the same question, is unknown
        session = sink.sequence.session
        if session is not None:
            told = (sink.sequence.tenant, session, attribution.party)
            if self._sessions.is_repeat(told, best.keys, self._now_ms):
                return None
        match = Match(
            sink=sink.sequence,
            source=attribution.sources[0],
            verdict=best,
            others=attribution.sources[1:],
        )
        finding = content_finding(match, confidence=sure, limits=limits, now_ms=self._now_ms)
        if not self._is_news(finding.id, 0 if is_copy else best.tokens):
            return None
        return finding if is_copy else self._digested(finding, sink, best)

    def _digested(self, finding: Finding, sink: Sink, verdict: Verdict) -> Finding:
        if self._digester is None:
            return finding
        are_tags = bool(len(self._memory.state))
        key_id = sink.sequence.key_id
        digests = self._digester.of(verdict.keys, are_tags=are_tags, key_id=key_id)
        return msgspec.structs.replace(finding, digests=digests)

    def _is_news(self, finding_id: str, tokens: int) -> bool:
        """True for a new finding, or for a known one whose runs hold more tokens now."""
        expired_ms = self._now_ms - self._settings.window.keep_ms
        while self._reported_order and self._reported_order[0][0] < expired_ms:
            self._reported.pop(self._reported_order.popleft()[1], None)
        if self._reported.get(finding_id, -1) >= tokens:
            return False
        self._reported[finding_id] = tokens
        self._reported_order.append((self._now_ms, finding_id))
        return True

    def _sink(self, at: int, made: Shingled | None = None) -> Sink:
        sequence = self._store.items[at]
        if made is None:
            made = shingles(sequence.token_hashes, self._settings.filter.min_distinct)
        return Sink(
            at=at, party=self._store.owners.item(at) >> 1, sequence=sequence, keys=made[0],
            masked=made[1], store=self._store, memory=self._memory,
            salt=self._index.salt(sequence.kv_pool), sampling=self._sampling,
        )  # fmt: skip

    def _take(
        self, sequence: Sequence, party: int, prepared: Prepared | None
    ) -> tuple[Shingled, Positions, Keys, int, int]:
        """Shingle and learn a sequence.

        Return its shingles, the positions and keys to index, how many shingles are masked, how many
        of the picked ones common.

        What a sequence taught is taken back where it turns out to be somebody else's.
        """
        known = (
            self._memory.state,
            *self._tainted.tables,
            *self._seen.room_for(len(sequence.token_hashes), self._memory.now_ms),
            mark_of(party, sequence.started_at_ms),
            self._index.salt(sequence.kv_pool),
        )
        if prepared is None:
            least = self._settings.filter.min_distinct
            made, learned = take(sequence.token_hashes, least, *self._sampling, *known)
        else:
            keys, masked, picked = prepared
            picked = ~masked if picked is None else picked
            made = keys, masked
            learned = learn_shown(keys, masked, picked, self._sampling.limit, *known)
        positions, pool_keys, fresh, low, common = learned
        self._memory.shown(fresh, party=party, seen_ms=sequence.started_at_ms)
        return made, positions, pool_keys, low, common

    def _count(self, shingles: int, known: int, picked: int, common: int, hits: Hits) -> None:
        """Count a response's shingles, and those that other tenants have shown as well.

        Those are as many of the `known` ones, which are not of low complexity, as of the `picked`.
        """
        self.stats.responses += 1
        self.stats.response_shingles += shingles
        matched = distinct_of(hits.at, hits.received) if len(hits.at) else 0
        if picked:
            self.stats.overlapping_shingles += round((common + matched) * known / picked)
        self._judge.count_common(common)

    def _make_room(self, keys: int) -> None:
        """Make room in the index and let go of the sequences that have left the window."""
        gone = self._index.make_room(keys, self._expired())
        self._store.release(gone)
        positions = len(self._store)
        is_due = positions >= RENUMBER_AT and gone >= positions * RENUMBER_SHARE
        if is_due or self._index.is_full:
            dropped = self._index.renumber()
            self._store.drop(dropped)
            self._copies.drop(dropped)

    def _expired(self) -> int:
        return self._store.expired(self._now_ms - self._settings.window.keep_ms)

    def _advance(self, sequence: Sequence) -> None:
        self._now_ms = max(self._now_ms, sequence.ended_at_ms)
        self._hear(sequence, self._now_ms)

    def _hear(self, sequence: Sequence, now_ms: int) -> None:
        """Move the memory's clock on, and tell it the secret; without tokens that names none."""
        self._memory.advance(now_ms)
        if len(sequence.token_hashes):
            self._key_id = sequence.key_id
            self._memory.hear(sequence.key_id)

    def _is_learning(self, key_id: str) -> bool:
        since_ms = self._memory.known_since_ms(key_id)
        seen_ms = 0 if since_ms is None else self._now_ms - since_ms
        return seen_ms < self._settings.commonness.learning_ms

    def _party(self, sequence: Sequence) -> int:
        """Return the number of the party inside the isolation boundary that a sequence is of."""
        return self._memory.party(party_name(sequence, self._settings.boundary))
