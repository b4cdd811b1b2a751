"""Scans stored sequences for the sources of one response; pure, in one pass, in any order.

The shingles of the response are put into a table once, and every shingle of every stored sequence
is looked up in it: memory is that of the response, however much is scanned.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from detector.finding import Run, party_of
from detector.kernels.runs import diagonal_runs
from detector.kernels.shingle import shingles
from detector.kernels.trace import hits, table
from detector.match.boundary import party_name
from detector.match.confidence import confidence, thresholds
from detector.match.cover import windows
from detector.match.question import answered_turns, last_user_turn, same_question
from detector.model import MAX_SEQUENCE_TOKENS, Kind, Role, Sequence
from detector.settings import DetectionSettings
from detector.sketch.shingle import SHINGLE_TOKENS, Keys, Mask, distinct, shingle_keys
from detector.trace.candidates import Candidate, Candidates, Stretch, longest_first
from detector.trace.model import (
    Explained,
    ProbableSource,
    Scanned,
    Traced,
    offset_of,
)
from detector.trace.response import Response
from detector.trace.showings import Showings

OWN: Final = -2
"""The number of the receiver's own party, beside those of others from 0."""


class Scan:
    """Takes stored sequences one by one. Raises nothing for what it cannot use.

    Looked at are sequences of the response's pool and key that began before the response ended and
    at `since_ms` or later. `part_tokens` is the most that a part of a long sequence holds.
    """

    def __init__(
        self,
        response: Response,
        settings: DetectionSettings,
        *,
        since_ms: int,
        part_tokens: int = MAX_SEQUENCE_TOKENS,
    ) -> None:
        self._response = response
        self._settings = settings
        self._since_ms = since_ms
        self._part_tokens = part_tokens
        self._question = last_user_turn(response.prompt)
        self._keys, self._masked = shingles(response.tokens, settings.filter.min_distinct)
        self._own_prompt = np.isin(self._keys, _keys_of(response.prompt))
        self._open = ~self._masked & ~self._own_prompt
        self._table = table(self._keys, self._open)
        self._showings = Showings(len(self._keys))
        self._candidates = Candidates(self._showings, bridge_tokens=settings.filter.bridge_tokens)
        self._parties = {party_name(response.first, settings.boundary): OWN}
        self._scanned = {"sequences": 0, "tokens": 0, "other_keys": 0}
        self._times: tuple[int, int] | None = None

    def add(self, sequence: Sequence) -> None:
        """Look at a stored sequence."""
        mine = self._response.first
        if sequence.kv_pool != mine.kv_pool:
            return
        if not self._since_ms <= sequence.started_at_ms < mine.ended_at_ms:
            return
        if sequence.key_id != mine.key_id:
            self._scanned["other_keys"] += 1
            return
        self._count(sequence)
        stored, at = hits(sequence.token_hashes, *self._table)
        if len(at) and not self._is_mine(sequence):
            self._take(sequence, stored, at)

    def result(self, *, is_complete: bool = True, unreadable: int = 0) -> Traced:
        """Return what the sequences so far tell; what else was scanned may be told besides."""
        first = self._response.first
        times = self._times or (None, None)
        return Traced(
            sink=party_of(first),
            kv_pool=first.kv_pool,
            engine=first.engine,
            response_tokens=len(self._response.tokens),
            sources=self._sources(),
            explained=Explained(
                low_complexity=int(self._masked.sum()),
                own_prompt=int(self._own_prompt.sum()),
                own_history=self._showings.own_history,
                common=self._showings.common,
            ),
            scanned=Scanned(
                **self._scanned, first_ms=times[0], last_ms=times[1], unreadable=unreadable
            ),
            dropped=self._candidates.dropped,
            is_complete=is_complete,
        )

    def _count(self, sequence: Sequence) -> None:
        self._scanned["sequences"] += 1
        self._scanned["tokens"] += len(sequence.token_hashes)
        at_ms = sequence.started_at_ms
        first, last = self._times or (at_ms, at_ms)
        self._times = (min(first, at_ms), max(last, at_ms))

    def _is_mine(self, sequence: Sequence) -> bool:
        """Tell whether a sequence is of the traced request, or may share by what it says itself."""
        mine = self._response.first
        if sequence.account is not None and sequence.account == mine.account:
            return True
        if mine.tenant != sequence.tenant:
            return False
        lineage = {sequence.request_id, sequence.parent_id}
        return mine.request_id in lineage or mine.parent_id in lineage - {None}

    def _take(self, sequence: Sequence, stored: NDArray[np.int64], at: NDArray[np.int64]) -> None:
        party = self._party(sequence)
        shown = distinct(at)
        if party == OWN:
            self._showings.own(shown, sequence.started_at_ms)
            return
        in_prompt = sequence.kind is Kind.PROMPT
        self._showings.others(shown, party, sequence.started_at_ms, in_prompt=in_prompt)
        if self._showings.explained(shown, party, sequence.started_at_ms).all():
            return
        private = self._private(sequence)
        order = np.lexsort((at, stored - at))
        bounds = diagonal_runs(
            sequence.token_hashes,
            self._response.tokens,
            stored[order],
            at[order],
            self._settings.filter.bridge_tokens,
        )
        stretches = [self._stretch(sequence, private, *bound) for bound in bounds.tolist()]
        label = (party_of(sequence), sequence.engine)
        name = (sequence.tenant, sequence.request_id, sequence.started_at_ms, sequence.kind.value)
        self._candidates.add(
            Candidate(name, label, party, sequence.started_at_ms, tuple(stretches))
        )

    def _party(self, sequence: Sequence) -> int:
        name = party_name(sequence, self._settings.boundary)
        return self._parties.setdefault(name, len(self._parties))

    def _stretch(
        self, sequence: Sequence, private: Mask, begin: int, end: int, diagonal: int
    ) -> Stretch:
        theirs = slice(begin + diagonal, end + diagonal)
        equal = self._response.tokens[begin:end] == sequence.token_hashes[theirs]
        whole = windows(equal, SHINGLE_TOKENS)
        is_open = np.zeros(end - begin, np.bool_)
        is_open[: len(whole)] = whole & self._open[begin : begin + len(whole)]
        is_open[: len(whole)] &= private[theirs][: len(whole)]
        start = begin + diagonal + offset_of(sequence, self._part_tokens)
        return Stretch(begin, start, int(equal.sum()), is_open)

    def _private(self, source: Sequence) -> Mask:
        """True for each token of a source where a shingle may begin that is the source's own.

        Not its template tokens, nor turns that ask, or answer, the question that is answered here.
        """
        private = np.ones(len(source.token_hashes), np.bool_)
        for span in source.spans:
            if span.role is Role.TEMPLATE:
                private[max(span.start - SHINGLE_TOKENS + 1, 0) : span.end] = False
        share = self._settings.filter.same_question_containment
        for span, asked in answered_turns(source):
            if same_question(self._question, asked, share):
                private[span.start : span.end] = False
        return private

    def _sources(self) -> tuple[ProbableSource, ...]:
        """Return the probable sources; parts of one prompt or response are one."""
        limits = thresholds(
            self._settings.filter, live_shingles=self._scanned["tokens"], learning=False
        )
        joined: dict[object, tuple[Candidate, tuple[Run, ...]]] = {}
        for one, runs in self._candidates.judged():
            best, found = joined.setdefault(one.name, (one, ()))
            joined[one.name] = (best, longest_first((*found, *runs)))
        sources = []
        for one, runs in joined.values():
            sure = confidence(runs[0].unexplained, limits)
            if sure is not None:
                party, engine = one.label
                sources.append(
                    ProbableSource(
                        party=party,
                        engine=engine,
                        confidence=sure,
                        unexplained_tokens=runs[0].unexplained,
                        runs=runs,
                    )
                )
        return tuple(sources)


def _keys_of(sequences: tuple[Sequence, ...]) -> Keys:
    """Return the distinct shingles of sequences, in ascending order."""
    parts = [shingle_keys(one.token_hashes) for one in sequences]
    return distinct(np.concatenate(parts)) if parts else np.empty(0, np.int64)
