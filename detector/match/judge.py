"""Judge one sink: which of its hits remain unexplained, and how long are the runs they form."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detector.finding import Run
from detector.index.postings import PostingIndex
from detector.index.sequences import SequenceStore
from detector.index.tenant_table import TenantTable
from detector.kernels import runs as run_kernels
from detector.kernels.hits import complete, of_source, tally
from detector.kernels.overlap import held
from detector.kernels.shingle import keys_of
from detector.match.allow_list import AllowList
from detector.match.explanation import ExplanationFilter
from detector.match.reasons import CODES, UNEXPLAINED, Codes, Reason, by_reason
from detector.match.sink import Sink, SinkHits
from detector.match.verdict import Verdict
from detector.settings import FilterSettings
from detector.sketch.shingle import SHINGLE_TOKENS, Mask, distinct

MAX_SOURCES = 64
"""Source sequences examined per sink, those with the most unexplained hits first: bounds the work
an adversary can cause with one response."""


class _MeasuredRun(NamedTuple):
    """A run: equal tokens, longest chain, where shingles begin, which of them are unexplained."""

    run: Run
    equal: Mask
    chain: tuple[int, int]
    starts: NDArray[np.int64]
    open_starts: NDArray[np.int64]
    codes: Codes


class Judge:
    """Turns the hits of one sink into verdicts, one per source with an unexplained run."""

    def __init__(
        self,
        settings: FilterSettings,
        *,
        store: SequenceStore,
        index: PostingIndex,
        seen: TenantTable,
        allowed: AllowList,
    ) -> None:
        self._settings = settings
        self._store = store
        self._seen = seen
        self.explanations = self._filter = ExplanationFilter(
            settings, store=store, index=index, seen=seen, allowed=allowed
        )
        self._explained = np.zeros(len(CODES) + 1, np.int64)
        self._common = 0

    @property
    def explained(self) -> dict[str, int]:
        """Matched shingles explained so far, by reason."""
        counts = self._explained.copy()
        counts[CODES[Reason.COMMON]] += self._common
        return by_reason(counts)

    def forget_counts(self) -> None:
        """Count from 0 again what is explained."""
        self._explained[:] = self._common = 0

    def count_common(self, shingles: int) -> None:
        """Count shingles that never came here because everybody shows them."""
        self._common += shingles

    def judge(self, sink: Sink, hits: SinkHits) -> list[Verdict]:
        """Return the verdicts for one sink, longest unexplained chain first."""
        codes = self._filter.by_shingle(sink, hits, exact=False)
        if not tally(codes, self._explained):
            return []
        verdicts = []
        for source in _strongest(hits.source[codes == UNEXPLAINED]):
            verdict = self._pair(sink, source, hits, codes)
            if verdict is not None:
                verdicts.append(verdict)
        return sorted(verdicts, key=lambda verdict: -verdict.tokens)

    def _pair(self, sink: Sink, at: int, hits: SinkHits, codes: Codes) -> Verdict | None:
        source = self._store.items[at]
        by_pair = self._filter.by_pair(sink, source)
        source_at, sink_at, codes = of_source(
            at, hits.source, hits.source_at, hits.sink_at, codes, by_pair
        )
        codes = self._filter.allowed(sink, sink_at, codes)
        if not tally(codes, self._explained):
            return None
        is_open = codes == UNEXPLAINED
        bounds = run_kernels.diagonal_runs(
            source.token_hashes,
            sink.sequence.token_hashes,
            source_at[is_open],
            sink_at[is_open],
            self._settings.bridge_tokens,
        )
        found = [self._run(sink, at, by_pair, bound) for bound in bounds.tolist()]
        found = [one for one in found if one.run.unexplained >= SHINGLE_TOKENS]
        if not found:
            return None
        found.sort(key=lambda one: (-one.run.unexplained, one.run.sink_start, one.run.source_start))
        matched = np.zeros(len(sink.sequence.token_hashes), np.bool_)
        reasons = np.zeros_like(self._explained)
        for one in found:
            matched[one.run.sink_start : one.run.sink_start + len(one.equal)] |= one.equal
            tally(one.codes, reasons)
        return Verdict(
            source=at,
            tokens=found[0].run.unexplained,
            chain=found[0].chain,
            runs=tuple(one.run for one in found),
            keys=distinct(sink.tagged[np.concatenate([one.open_starts for one in found])]),
            matched_tokens=int(np.count_nonzero(matched)),
            matched_shingles=held(keys_of(source.token_hashes), sink.keys),
            rarity=self._rarity(sink, at, found[0].starts),
            reasons=by_reason(reasons),
        )

    def _run(self, sink: Sink, at: int, by_pair: Codes, bound: list[int]) -> _MeasuredRun:
        """Measure one run: its matched tokens, the longest unexplained chain, its open shingles."""
        begin, end, diagonal = bound
        source = self._store.items[at]
        equal, sink_at = run_kernels.compare(
            source.token_hashes, sink.sequence.token_hashes, begin, end, diagonal
        )
        hits = SinkHits(np.full(len(sink_at), at), sink_at + diagonal, sink_at)
        codes = self._filter.by_shingle(sink, hits, exact=True)
        complete(codes, by_pair, hits.source_at)
        codes = self._filter.allowed(sink, sink_at, codes)
        open_at = sink_at[(codes == UNEXPLAINED) & ~sink.masked[sink_at]]
        longest, first, last = run_kernels.longest_chain(
            run_kernels.covered(open_at, begin, end), self._settings.bridge_tokens
        )
        return _MeasuredRun(
            Run(
                source_start=begin + diagonal,
                sink_start=begin,
                length=int(np.count_nonzero(equal)),
                unexplained=longest,
            ),
            equal,
            (begin + first, begin + last),
            sink_at,
            open_at,
            codes,
        )

    def _rarity(self, sink: Sink, at: int, starts: NDArray[np.int64]) -> float:
        """Share of the remembered shingles that nobody but source and sink has ever shown."""
        keys = sink.tagged[starts[sink.remembered[starts]]]
        if not len(keys):
            return 0.0
        private = self._seen.private(keys, sink.party, int(self._store.owners[at]) >> 1)
        return round(private / len(keys), 3)


def _strongest(sources: NDArray[np.int64]) -> list[int]:
    """Return the distinct sources of some hits, those of most hits first, of equal ones the first.

    Most often there is one, which costs a tenth of the general case.
    """
    if (sources == sources[0]).all():
        return [int(sources[0])]
    found, counts = np.unique(sources, return_counts=True)
    return found[np.argsort(-counts, kind="stable")][:MAX_SOURCES].tolist()  # type: ignore[no-any-return]
