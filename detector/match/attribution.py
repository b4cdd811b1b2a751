"""Whose content was it: one source per tenant, ties listed, relays told from origins."""

from dataclasses import dataclass
from itertools import compress

import numpy as np

from detector.index.postings import PostingIndex
from detector.index.sequences import SequenceStore, request_key
from detector.index.taint import TaintedShingles
from detector.index.tenant_table import parties
from detector.kernels.runs import holding
from detector.match.sink import Sink
from detector.match.verdict import Verdict
from detector.model import Kind, Sequence
from detector.sketch.shingle import SHINGLE_TOKENS

MAX_TIED_SEQUENCES = 1_024
"""Sequences of one party searched for equally good sources: the latest of the window."""

COMPARED_AT_ONCE = 64
"""Sequences put one behind another for that: 32 MiB of the longest ones."""

TIE_TOKENS = 2
"""A source that lacks this many tokens of the run at most is equally good: the tokens around a
copied run agree with one source or another by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """The best verdict of one source party, and every sequence it may have come from.

    `sources` all hold the verdict's longest unexplained run: first the one that the evidence's
    offsets lead into, then the latest started. Of verdicts of equal length the latest started is
    taken: a tenant that re-sends its conversation shows the same run in every turn, and memory that
    was just in use is the likeliest to bleed (the true one in 88 % of measured cases).
    """

    party: int
    verdict: Verdict
    sources: tuple[Sequence, ...]


class Attributor:
    """Names the sources of verdicts with the help of the window's store, index and taint.

    The index holds at least one of every `sampled_from` neighbouring shingles that are rare.
    """

    def __init__(
        self,
        *,
        store: SequenceStore,
        index: PostingIndex,
        tainted: TaintedShingles,
        window_ms: int,
        sampled_from: int = 1,
    ) -> None:
        self._store = store
        self._index = index
        self._tainted = tainted
        self._window_ms = window_ms
        self._sampled_from = sampled_from

    def attribute(self, sink: Sink, verdicts: list[Verdict]) -> list[Attribution]:
        """Return one attribution per source party, without those that only relayed content.

        A party is a relay when every unexplained shingle came to it through an earlier bleed whose
        origin is among the sources too.
        """
        best: dict[int, Verdict] = {}
        for verdict in verdicts:
            party = int(self._store.owners[verdict.source]) >> 1
            if party not in best or self._rank(verdict) > self._rank(best[party]):
                best[party] = verdict
        return [
            Attribution(party=party, verdict=one, sources=self._equally_good(sink, party, one))
            for party, one in best.items()
            if not self._is_relay(party, one, list(best))
        ]

    def _rank(self, verdict: Verdict) -> tuple[int, int, str, bool]:
        return (verdict.tokens, *_latest(self._store.items[verdict.source]))

    def _equally_good(self, sink: Sink, party: int, verdict: Verdict) -> tuple[Sequence, ...]:
        best = self._store.items[verdict.source]
        found = self._holding(self._candidates(sink, party, verdict), sink, verdict)
        by_request = {request_key(best): best}
        for item in sorted(found, key=_latest, reverse=True):
            by_request.setdefault(request_key(item), item)
        return tuple(by_request.values())

    def _holding(self, candidates: list[int], sink: Sink, verdict: Verdict) -> list[Sequence]:
        """Return the other sequences of the sink's pool that hold nearly all of the run."""
        items = [self._store.items[at] for at in candidates if at != verdict.source]
        items = [item for item in items if item.kv_pool == sink.sequence.kv_pool]
        run = sink.sequence.token_hashes[slice(*verdict.chain)]
        found: list[Sequence] = []
        for begin in range(0, len(items), COMPARED_AT_ONCE):
            some = items[begin : begin + COMPARED_AT_ONCE]
            texts = [item.token_hashes for item in some]
            ends = np.cumsum([len(text) for text in texts])
            least = verdict.tokens - TIE_TOKENS
            held = holding(np.concatenate(texts), ends, run, SHINGLE_TOKENS, least)
            found += compress(some, held)
        return found

    def _candidates(self, sink: Sink, party: int, verdict: Verdict) -> list[int]:
        """Return the party's sequences of the window that may hold the run.

        The index knows in which sequence a shingle was shown last and, until that one has left the
        window, first, not in which ones in between. Asked are as many of the run's first shingles
        as the index may sample one from; if it knows none of them, the whole window is searched.
        A sample says nothing of what came after that last one: of a text that lacks a token of the
        run there it may hold other shingles.
        """
        asked = sink.keys[verdict.chain[0] :][: self._sampled_from] ^ sink.salt
        first, last = self._index.showings(asked, party)
        if 0 <= first == last:
            return [first]
        store = self._store
        is_sure = last >= 0 and self._sampled_from == 1
        begin, end = store.first_live, last + 1 if is_sure else len(store)
        starts, owners = store.starts[begin:end], store.owners[begin:end]
        fits = (owners >> 1 == party) & (starts >= sink.sequence.started_at_ms - self._window_ms)
        fits &= starts < sink.sequence.ended_at_ms
        found = np.flatnonzero(fits)[-MAX_TIED_SEQUENCES:] + begin
        return found.tolist()  # type: ignore[no-any-return]

    def _is_relay(self, party: int, verdict: Verdict, sources: list[int]) -> bool:
        others = [other for other in sources if other != party]
        if not others or self._tainted.is_empty:
            return False
        origins = parties(self._tainted.origins(verdict.keys))
        if (origins == party).any():
            return False
        return bool(np.isin(origins, others).any(axis=1).all())


def _latest(item: Sequence) -> tuple[int, str, bool]:
    return (item.started_at_ms, item.request_id, item.kind is Kind.PROMPT)
