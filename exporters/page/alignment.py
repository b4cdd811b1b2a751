"""The picture of a finding: where the same tokens lie in source and sink, offsets and lengths."""

from typing import Final, NamedTuple

from detector.finding import Finding

WIDTH: Final = 1000
"""Of the picture, in its own units."""

NARROWEST: Final = 4.0
"""A run of few tokens in a long text must still be seen."""

MOST_RUNS: Final = 60
"""More would be one blot; the table below the picture lists no more either."""


class Band(NamedTuple):
    """One run: where it begins and ends in the source above and in the sink below, and how sure."""

    source_from: float
    source_to: float
    sink_from: float
    sink_to: float
    is_explained: bool
    says: str

    @property
    def outline(self) -> str:
        """The points of what connects both."""
        return (
            f"{self.source_from:.1f},46 {self.source_to:.1f},46 "
            f"{self.sink_to:.1f},94 {self.sink_from:.1f},94"
        )


class Alignment(NamedTuple):
    """Two bars of tokens and the runs between them; both bars have one scale."""

    source_tokens: int
    sink_tokens: int
    source_width: float
    sink_width: float
    source_is_whole: bool
    bands: tuple[Band, ...]
    left_out: int
    says: str


def alignment(finding: Finding) -> Alignment | None:
    """Return the picture of a finding, None if it has no runs to show."""
    runs = finding.evidence.runs[:MOST_RUNS]
    if not runs:
        return None
    known = finding.source.prompt_tokens if finding.source.kind == "prompt" else None
    source_tokens = max([known or 0, *(run.source_start + run.length for run in runs)])
    sink_tokens = max(
        [finding.evidence.sink_tokens, *(run.sink_start + run.length for run in runs)]
    )
    scale = WIDTH / max(source_tokens, sink_tokens)
    bands = []
    for run in runs:
        width = max(run.length * scale, NARROWEST)
        source, sink = run.source_start * scale, run.sink_start * scale
        says = (
            f"{run.length} tokens: source from {run.source_start}, response from "
            f"{run.sink_start}, {run.unexplained} unexplained"
        )
        bands.append(Band(source, source + width, sink, sink + width, not run.unexplained, says))
    return Alignment(
        source_tokens=source_tokens,
        sink_tokens=sink_tokens,
        source_width=source_tokens * scale,
        sink_width=sink_tokens * scale,
        source_is_whole=known is not None,
        bands=tuple(bands),
        left_out=len(finding.evidence.runs) - len(runs),
        says=f"{len(finding.evidence.runs)} matching runs between source and response",
    )
