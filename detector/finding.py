"""A finding: one rule, one sink request, one source tenant, with the evidence and one sentence."""

import enum

import msgspec

from detector.model import Sequence


class Confidence(enum.StrEnum):
    """How sure the explanation filter is that the overlap is a bleed."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Severity(enum.StrEnum):
    """How urgent a finding is, in rising order."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Position in the rising order, 0 for INFO."""
        return list(Severity).index(self)


class Party(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a finding: whose content (source) or who received it (sink).

    `kind` is prompt or response, or engine where a rule is about an engine and not about a
    request: then the request id is empty, and the tenant too unless the rule names two.
    """

    tenant: str
    request_id: str
    kind: str
    started_at_ms: int
    ended_at_ms: int
    prompt_tokens: int | None = None


def party_of(sequence: Sequence) -> Party:
    """Return the side of a finding that a sequence is."""
    return Party(
        tenant=sequence.tenant,
        request_id=sequence.request_id,
        kind=sequence.kind.value,
        started_at_ms=sequence.started_at_ms,
        ended_at_ms=sequence.ended_at_ms,
        prompt_tokens=sequence.prompt_token_count,
    )


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A maximal common token run on one diagonal.

    Positions are token offsets into the source and the sink. `length` counts matched tokens;
    bridged gaps are inside the run but do not count. `unexplained` is the part of `length` that
    no reason explains.
    """

    source_start: int
    sink_start: int
    length: int
    unexplained: int


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """What the confidence was decided against, in unexplained tokens."""

    low: int
    medium: int
    high: int
    density_ratio: float
    learning: bool


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Why the overlap is unexplained; numbers only, never tokens.

    `reasons` maps each explanation reason to the matched shingles it subtracted from this pair;
    `containment` is the share of the sink's shingles found in the source, 0 to 1; `rarity` the
    share of the longest run's remembered shingles (none is of low complexity) never seen with any
    other tenant, 0 to 1. `similarity` is the Jaccard similarity of both responses' bigrams where
    the whole response was duplicated; a duplicate without runs is an edited copy, whose unexplained
    tokens lie in common bigrams.
    """

    runs: tuple[Run, ...]
    matched_tokens: int
    unexplained_tokens: int
    sink_tokens: int
    containment: float
    rarity: float
    reasons: dict[str, int]
    thresholds: Thresholds
    similarity: float | None = None


NO_OVERLAP = Evidence(
    runs=(),
    matched_tokens=0,
    unexplained_tokens=0,
    sink_tokens=0,
    containment=0.0,
    rarity=0.0,
    reasons={},
    thresholds=Thresholds(low=0, medium=0, high=0, density_ratio=1.0, learning=False),
)
"""The evidence of rules that compare no text: contradictions, and what engines report."""


DIGEST_BYTES = 8
"""Of one shingle: a tag of SipHash-2-4."""

MOST_DIGESTS = 4_096
"""Digests of one finding, 32 KiB: a longer copy is judged again for what is left of it."""


class Digests(msgspec.Struct, frozen=True, kw_only=True):
    """Keyed digests of the unexplained shingles: whether a text holds them, the secret tells.

    `key` names the secret, `shingles` holds DIGEST_BYTES for each, MOST_DIGESTS at most
    (base64 where it is JSON).
    """

    key: str
    shingles: bytes


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One detected bleed or fault. `id` is deterministic: a replay never makes a second one.

    `runtime` is what engines reported around a content finding, or the numbers that a rule without
    text rests on. `digests` are there where runs of tokens were found under a secret that is kept.
    """

    id: str
    rule: str
    severity: Severity
    confidence: Confidence
    kv_pool: str
    engine: str
    model: str
    observed_at_ms: int
    detected_at_ms: int
    sink: Party
    source: Party
    other_sources: tuple[Party, ...]
    evidence: Evidence
    explanation: str
    runtime: dict[str, str] | None = None
    digests: Digests | None = None

    @property
    def is_content(self) -> bool:
        """True if it rests on common text; the other rules compare none."""
        return self.evidence != NO_OVERLAP
