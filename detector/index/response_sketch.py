"""What a worker tells of one response so that others can see whether theirs is the same.

Nothing in it is a token hash: bigrams and shingles are sampled by SipHash tags, bands of MinHash
values are SipHash tags as well, and it travels sealed.
"""

from typing import Annotated, Final

import msgspec
import numpy as np

from detector.sketch.bottom_k import Values
from detector.sketch.shingle import Keys

BIGRAMS: Final = 128
"""Sampled bigrams: the standard deviation of an estimated similarity is 0.044 at most."""

SHINGLES: Final = 64
"""Sampled shingles of the last user turn: 0.063 at most, and exact up to 73 tokens."""

MAX_NAME: Final = 1_024
"""Longest name in a sketch, in characters: that of the longest name in a sequence record."""

MAX_BANDS: Final = 64

_Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Time = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000, le=253_402_300_799_999)]

SketchKey = tuple[str, str, int, int]


class ResponseSketch(msgspec.Struct, frozen=True, kw_only=True, array_like=True, eq=False):
    """One response (or one part of a long one), who got it, and keyed samples of what it says.

    `party` is the number of the tenant inside the isolation boundary. Times are event time, ms.
    `values` are the sampled bigrams (little-endian uint32), `explained` those of them that the
    receiver's own prompt, the memory of what is common or an allow-list explain; `bigrams` and
    `unexplained` count the distinct bigrams of the whole response. `question` is a keyed digest of
    the last user turn, empty where that is unknown.
    """

    tenant: _Name
    request_id: _Name
    kv_pool: _Name
    engine: _Name
    model: _Name
    party: _Count
    started_at_ms: _Time
    ended_at_ms: _Time
    tokens: _Count
    bigrams: _Count
    unexplained: _Count
    values: Annotated[bytes, msgspec.Meta(max_length=4 * BIGRAMS)]
    explained: Annotated[bytes, msgspec.Meta(max_length=4 * BIGRAMS)]
    bands: Annotated[bytes, msgspec.Meta(max_length=8 * MAX_BANDS)]
    question: Annotated[bytes, msgspec.Meta(max_length=8)] = b""
    question_values: Annotated[bytes, msgspec.Meta(max_length=4 * SHINGLES)] = b""
    question_shingles: _Count = 0
    part: _Count = 0
    account: _Name | None = None
    parent_id: _Name | None = None
    prompt_tokens: _Count | None = None
    gateway_cache_hit: bool = False
    learning: bool = False

    def __repr__(self) -> str:
        """Metadata only."""
        return f"ResponseSketch({self.request_id!r} of {self.tenant!r} in {self.kv_pool!r})"

    @property
    def key(self) -> SketchKey:
        """What tells one response, or part of it, from another."""
        return (self.tenant, self.request_id, self.started_at_ms, self.part)

    @property
    def is_whole(self) -> bool:
        """True if every array has whole numbers in it."""
        sampled = (self.values, self.explained, self.question_values)
        return not any(len(one) % 4 for one in sampled) and not len(self.bands) % 8

    def band_tags(self) -> Keys:
        """Return the tags of the bands."""
        return np.frombuffer(self.bands, "<i8").astype(np.int64)


def numbers(packed: bytes) -> Values:
    """Return the sampled values in `packed`."""
    return np.frombuffer(packed, "<u4").astype(np.uint32)
