"""The sources that may be probable: a bounded number, judged by what nobody else has shown."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detector.finding import Party, Run
from detector.kernels.runs import covered, longest_chain
from detector.sketch.shingle import Mask
from detector.trace.showings import Showings

KEPT: Final = 256
"""Sources kept at most: a longer table helps nobody, and with the longest response they hold 70 MB.
What is let go holds less unexplained text at that moment than every one that stays."""


class Stretch(NamedTuple):
    """A run of common tokens before it is known who else has shown it.

    It begins at `begin` in the response and `source_start` in the source. `starts` is True where
    a shingle begins that nothing known of this pair explains, one value for each token.
    """

    begin: int
    source_start: int
    length: int
    starts: Mask


class Candidate(NamedTuple):
    """A stored sequence with runs: `name` tells its request and side, `label` party and engine."""

    name: tuple[str, str, int, str]
    label: tuple[Party, str]
    party: int
    started_ms: int
    stretches: tuple[Stretch, ...]


class Candidates:
    """Keeps the candidates that hold most of what is unexplained so far."""

    def __init__(self, showings: Showings, *, bridge_tokens: int) -> None:
        self._showings = showings
        self._bridge = bridge_tokens
        self._held: list[Candidate] = []
        self.dropped = 0
        """Candidates let go that still held something unexplained."""

    def add(self, candidate: Candidate) -> None:
        """Take a candidate."""
        self._held.append(candidate)
        if len(self._held) >= 2 * KEPT:
            judged = self.judged()
            self.dropped += max(len(judged) - KEPT, 0)
            self._held = [one for one, _ in judged[:KEPT]]

    def judged(self) -> list[tuple[Candidate, tuple[Run, ...]]]:
        """Return the candidates with unexplained runs, the best first, runs longest first.

        Of equally long ones the latest comes first: memory that was just in use is the likeliest
        to bleed.
        """
        found = [(one, self._runs(one)) for one in self._held]
        return sorted(
            ((one, runs) for one, runs in found if runs),
            key=lambda pair: (-pair[1][0].unexplained, -pair[0].started_ms, pair[0].name),
        )

    def _runs(self, candidate: Candidate) -> tuple[Run, ...]:
        runs = (self._run(candidate, one) for one in candidate.stretches)
        return longest_first(run for run in runs if run.unexplained)

    def _run(self, candidate: Candidate, one: Stretch) -> Run:
        starts: NDArray[np.int64] = np.flatnonzero(one.starts)
        explained = self._showings.explained(
            starts + one.begin, candidate.party, candidate.started_ms
        )
        mine = covered(starts[~explained], 0, len(one.starts))
        return Run(
            source_start=one.source_start,
            sink_start=one.begin,
            length=one.length,
            unexplained=int(longest_chain(mine, self._bridge)[0]),
        )


def longest_first(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return runs by their unexplained tokens, then by where they begin."""
    return tuple(sorted(runs, key=lambda run: (-run.unexplained, run.sink_start)))
