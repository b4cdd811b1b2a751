"""The explanation filter: which matched shingles have an innocent reason."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from detector.index.postings import PostingIndex
from detector.index.sequences import SequenceStore
from detector.index.tenant_table import TenantTable
from detector.kernels.between import spread
from detector.kernels.explain import explain_hits
from detector.match.allow_list import AllowList
from detector.match.question import last_user_turn, same_question, shown_in_same_turns
from detector.match.reasons import CODES, UNEXPLAINED, Codes, Reason
from detector.match.sink import Sink, SinkHits
from detector.model import Kind, Role, Sequence
from detector.settings import FilterSettings
from detector.sketch.shingle import SHINGLE_TOKENS, shingle_keys


class ExplanationFilter:
    """Gives every hit the code of the first reason that explains it, 0 when none does."""

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
        self._index = index
        self._seen = seen
        self._allowed = allowed

    def by_shingle(self, sink: Sink, hits: SinkHits, *, exact: bool) -> Codes:
        """Return what the receiver's prompts, the commonness and the history explain.

        `exact` also looks the shingles up in the request's own prompt instead of the window's
        postings alone, which a sampled or capped index holds only in part, and asks the remembered
        shingles of a run, whose hits must ascend, about those between them.
        """
        codes: Codes = explain_hits(
            hits.sink_at, hits.source, sink.keys, sink.tagged, sink.salt,
            sink.party, sink.sequence.started_at_ms, self._store.owners, self._store.starts,
            *self._index.table, *self._seen.tables,
        )  # fmt: skip
        if not exact:
            return codes
        own = None
        if len(sink.own_prompt):
            own = np.isin(sink.keys[hits.sink_at], sink.own_prompt)
            codes[own] = UNEXPLAINED
        if sink.sampling.window:
            # others may have shown by chance what this text does not remember
            codes = spread(codes, sink.remembered[hits.sink_at] | (codes != UNEXPLAINED))
        if own is not None:
            codes[own] = CODES[Reason.OWN_PROMPT]
        return codes

    def by_pair(self, sink: Sink, source: Sequence) -> Codes:
        """Return one code per token offset of the source's shingles, from what is true of the pair.

        Same question covers user and assistant spans only: a system prompt or tool output stays
        private even when two tenants ask the same.
        """
        codes = np.zeros(max(len(source.token_hashes), 1), np.uint8)
        whole = self._whole_pair(sink.sequence, source)
        if whole is not None:
            codes[:] = CODES[whole]
            return codes
        for span in source.spans:
            if span.role is Role.TEMPLATE:
                first = max(span.start - SHINGLE_TOKENS + 1, 0)
                codes[first : span.end] = CODES[Reason.TEMPLATE]
        self._same_questions(sink, source, codes)
        return codes

    def allowed(self, sink: Sink, sink_at: NDArray[np.int64], codes: Codes) -> Codes:
        """Return the codes of shingles of the sink with what the allow-lists explain filled in."""
        if len(self._allowed):
            listed = self._allowed.holds(sink.keys[sink_at])
            codes[listed & (codes == UNEXPLAINED)] = CODES[Reason.ALLOW_LIST]
        return codes

    def _whole_pair(self, sink: Sequence, source: Sequence) -> Reason | None:
        if sink.account is not None and sink.account == source.account:
            return Reason.SAME_ACCOUNT
        if sink.gateway_cache_hit:
            return Reason.GATEWAY_CACHE
        lineage = {source.request_id, source.parent_id} - {None}
        if sink.parent_id in lineage or sink.request_id == source.parent_id:
            return Reason.SIBLING
        return None

    def _same_questions(self, sink: Sink, source: Sequence, codes: Codes) -> None:
        """Mark what answers, or asks, the question that the sink answers.

        A response may also repeat an earlier turn of its own conversation: then that one counts.
        """
        share = self._settings.same_question_containment
        prompts: Iterable[Sequence] = (source,)
        if source.kind is Kind.RESPONSE:
            prompts = self._store.prompts_of(source)
            if same_question(sink.question, last_user_turn(prompts), share):
                codes[:] = CODES[Reason.SAME_QUESTION]
                return
        shown = shown_in_same_turns(prompts, sink.question, share)
        if len(shown):
            keys = shingle_keys(source.token_hashes)
            codes[: len(keys)][np.isin(keys, shown)] = CODES[Reason.SAME_QUESTION]
