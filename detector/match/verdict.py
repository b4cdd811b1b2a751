"""What the explanation filter concludes about one pair of source and sink sequences."""

from dataclasses import dataclass

from detector.finding import Run
from detector.sketch.shingle import Keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One source sequence that some unexplained run of the sink came from.

    `source` is its position in the store. `tokens` are the matched tokens of the longest
    unexplained chain, which spans `chain` (begin, end) in the sink; `keys` the unexplained shingles
    of all chains; `matched_shingles` the sink's shingles that this source holds; `reasons` the
    explained shingles of the runs by reason.

    An edited copy has no runs: `similarity` is set (Jaccard, of bigrams that nothing explains),
    `tokens` are those of the sink in bigrams that both have, and `keys` are these bigrams.
    """

    source: int
    tokens: int
    chain: tuple[int, int]
    runs: tuple[Run, ...]
    keys: Keys
    matched_tokens: int
    matched_shingles: int
    rarity: float
    reasons: dict[str, int]
    similarity: float | None = None
