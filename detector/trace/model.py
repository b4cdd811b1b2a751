"""What a look-back found: the probable sources of one response, as offsets, lengths and counts."""

import msgspec

from detector.finding import Confidence, Party, Run
from detector.model import PART_OVERLAP, Sequence


class ProbableSource(msgspec.Struct, frozen=True, kw_only=True):
    """One earlier prompt or response of another tenant that holds text of the traced response.

    `runs` have the longest unexplained first; `unexplained_tokens` is that of the longest.
    """

    party: Party
    engine: str
    confidence: Confidence
    unexplained_tokens: int
    runs: tuple[Run, ...]


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """Shingles of the response that name nobody, by reason; a shingle may have several."""

    low_complexity: int = 0
    own_prompt: int = 0
    own_history: int = 0
    common: int = 0


class Scanned(msgspec.Struct, frozen=True, kw_only=True):
    """How much was searched. Times are the starts of the first and the last sequence."""

    sequences: int = 0
    tokens: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    other_keys: int = 0
    """Sequences hashed under another secret than the response: they cannot be compared."""
    unreadable: int = 0
    """Messages, or entries of a log, that could not be read."""


class Traced(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one look-back. Sources are in the order of how probable they are.

    `is_complete` is False if it ended for want of time; `dropped` counts sources that were let go
    because so many others held more of the response.
    """

    sink: Party
    kv_pool: str
    engine: str
    response_tokens: int
    sources: tuple[ProbableSource, ...]
    explained: Explained
    scanned: Scanned
    dropped: int = 0
    is_complete: bool = True


def offset_of(sequence: Sequence, part_tokens: int) -> int:
    """Return where a part begins in its prompt or response; parts are of `part_tokens` at most."""
    return sequence.part * (part_tokens - PART_OVERLAP)
