"""Sketches of the responses that a detector has judged, with what explains them from here."""

import hashlib
from typing import Final

import numpy as np

from detector.index.copies import FALSE_POSITIVE_WEIGHT, NUM_PERM
from detector.index.response_sketch import BIGRAMS, SHINGLES, ResponseSketch
from detector.kernels.bands import band_keys
from detector.kernels.bigrams import bigram_keys, sampled_sketch
from detector.kernels.siphash import tags
from detector.match.copies import tokens_covered
from detector.match.sink import Sink
from detector.model import Hashes
from detector.settings import CopySettings
from detector.sketch.bigrams import BIGRAM_TOKENS
from detector.sketch.bottom_k import Values, high_halves
from detector.sketch.header import SketchHeader
from detector.sketch.lsh import best_shape
from detector.sketch.minhash import permutations
from detector.sketch.shingle import SHINGLE_TOKENS, Mask, shingle_keys
from detector.sketch.siphash import initial_state
from detector.sketch.tag_keys import TagKeys

_ONE_SALT: Final = np.uint32(0)
"""Pools are to meet here, so their bigrams are sketched alike."""


class ResponseSketches:
    """Makes a sketch of each response that is long enough; whoever sends them takes them."""

    def __init__(self, settings: CopySettings, keys: TagKeys) -> None:
        self._least = settings.min_bigrams
        self._key = keys.bands
        self._state = initial_state(keys.bands)
        self._permutations = permutations(SketchHeader(num_perm=NUM_PERM, k=BIGRAM_TOKENS))
        self._shape = best_shape(
            settings.similarity, NUM_PERM, false_positive_weight=FALSE_POSITIVE_WEIGHT
        )
        self._made: list[ResponseSketch] = []

    def take(self) -> list[ResponseSketch]:
        """Return what was made since the last call."""
        made, self._made = self._made, []
        return made

    def add(self, sink: Sink, *, explained: Mask, learning: bool) -> None:
        """Sketch a response; `explained` is True for its shingles that need no other reason."""
        sequence = sink.sequence
        tokens = sequence.token_hashes
        if len(tokens) <= self._least:
            return
        own = np.isin(sink.keys, sink.own_prompt)
        covered = tokens_covered(explained | own, len(tokens))
        values = high_halves(tags(self._state, bigram_keys(tokens)))
        distinct = np.unique(values)
        harmless = np.unique(values[covered[:-1] & covered[1:]])
        unexplained = len(distinct) - len(harmless)
        if len(distinct) < self._least:
            return
        sampled = distinct[:BIGRAMS]
        asked = sink.question
        question = _NO_QUESTION if asked is None or not len(asked) else self._question(asked)
        self._made.append(
            ResponseSketch(
                tenant=sequence.tenant, request_id=sequence.request_id, kv_pool=sequence.kv_pool,
                engine=sequence.engine, model=sequence.model, party=sink.party,
                started_at_ms=sequence.started_at_ms, ended_at_ms=sequence.ended_at_ms,
                tokens=len(tokens), bigrams=len(distinct), unexplained=unexplained,
                values=_packed(sampled), explained=_packed(np.intersect1d(sampled, harmless)),
                bands=self._bands(tokens), question=question[0], question_values=question[1],
                question_shingles=question[2], part=sequence.part, account=sequence.account,
                parent_id=sequence.parent_id, prompt_tokens=sequence.prompt_token_count,
                gateway_cache_hit=sequence.gateway_cache_hit, learning=learning,
            )
        )  # fmt: skip

    def _bands(self, tokens: Hashes) -> bytes:
        """Return the tags of the MinHash bands of a response."""
        values = sampled_sketch(tokens, _ONE_SALT, *self._permutations)
        keys = band_keys(values[None], self._shape.bands, self._shape.rows)[0]
        return bytes(tags(self._state, keys).astype("<i8").tobytes())

    def _question(self, asked: Hashes) -> tuple[bytes, bytes, int]:
        """Return a keyed digest of the last user turn, a sample of its shingles, their number."""
        words = np.ascontiguousarray(asked).tobytes()
        digest = hashlib.blake2b(words, key=self._key, digest_size=8).digest()
        if len(asked) < SHINGLE_TOKENS:
            return digest, b"", 0
        distinct = np.unique(high_halves(tags(self._state, shingle_keys(asked))))
        return digest, _packed(distinct[:SHINGLES]), len(distinct)


_NO_QUESTION: Final = (b"", b"", 0)


def _packed(values: Values) -> bytes:
    return values.astype("<u4", copy=False).tobytes()
