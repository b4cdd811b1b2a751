"""What became of every planted bleed: the findings that name its victim and its source."""

from collections.abc import Iterable

import msgspec

from detector.finding import Confidence, Finding


class Bleed(msgspec.Struct, frozen=True, kw_only=True):
    """One planted bleed, as a row of the truth file; further fields of the row are ignored."""

    victim_request_id: str
    source_request_id: str
    source_tenant: str
    kind: str
    length: int | str = msgspec.field(name="L")
    run_tokens: int | None = None
    victim_start: int = 0
    victim_end: int = 0

    @property
    def tokens(self) -> int:
        """Length of the run in tokens; `length` may be a word such as "full"."""
        if self.run_tokens is not None:
            return self.run_tokens
        return self.length if isinstance(self.length, int) else self.victim_end - self.victim_start


class Outcome(msgspec.Struct, frozen=True):
    """A bleed and the findings that name its victim and its source's tenant, in order."""

    bleed: Bleed
    findings: tuple[Finding, ...]

    @property
    def found(self) -> bool:
        """Whether anything was found, at any confidence."""
        return bool(self.findings)

    @property
    def found_high(self) -> bool:
        """Whether it was found with high confidence."""
        return any(finding.confidence is Confidence.HIGH for finding in self.findings)

    @property
    def right_source(self) -> bool:
        """Whether a finding lists the very request that the content came from."""
        return any(
            source.request_id == self.bleed.source_request_id
            for finding in self.findings
            for source in (finding.source, *finding.other_sources)
        )

    @property
    def delay_ms(self) -> int:
        """Event time from the end of the response to its first finding."""
        return min(f.detected_at_ms - f.sink.ended_at_ms for f in self.findings)


def outcomes(findings: Iterable[Finding], truth: Iterable[Bleed]) -> list[Outcome]:
    """Return what became of every bleed, in the order of `truth`."""
    by_pair: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        by_pair.setdefault((finding.sink.request_id, finding.source.tenant), []).append(finding)
    return [
        Outcome(bleed, tuple(by_pair.get((bleed.victim_request_id, bleed.source_tenant), ())))
        for bleed in truth
    ]
