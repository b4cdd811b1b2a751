"""Groups released sequences into batches, whose shingles a backend makes at once."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from detector.backend import Backend, choose_backend
from detector.model import Sequence
from detector.settings import DetectionSettings
from detector.sketch.batch import Prepared, flatten

BATCH_TOKENS = 1 << 20
"""Tokens of a batch at most, unless one sequence is longer: enough to hide what it costs to start
work on a device, and 14 MB of shingles."""


class Released(NamedTuple):
    """A sequence whose turn has come; `newest_ms` is the newest start that was known then."""

    sequence: Sequence
    newest_ms: int | None


class Batches:
    """Has the backend of the settings prepare sequences, many at a time and in their order.

    With numba the detector makes the shingles itself, in the pass that learns them: that is
    faster than any batch, and nothing is held back for one.
    """

    def __init__(self, settings: DetectionSettings) -> None:
        chosen = choose_backend(settings.backend)
        self._backend: Backend | None = None if chosen.name == "numba" else chosen
        self._min_distinct = settings.filter.min_distinct
        sampled = settings.index.sampling == "winnow"
        self._window = settings.index.winnow_window if sampled else None

    def prepare(self, released: Iterable[Released]) -> Iterator[tuple[Released, Prepared | None]]:
        """Yield every sequence with its shingles, or without where the detector makes them."""
        if self._backend is None:
            yield from ((one, None) for one in released)
            return
        held: list[Released] = []
        tokens = 0
        for one in released:
            count = len(one.sequence.token_hashes)
            if held and tokens + count > BATCH_TOKENS:
                yield from self._made(self._backend, held)
                held, tokens = [], 0
            held.append(one)
            tokens += count
        yield from self._made(self._backend, held)

    def _made(
        self, backend: Backend, held: list[Released]
    ) -> Iterator[tuple[Released, Prepared | None]]:
        batch = flatten([one.sequence.token_hashes for one in held])
        made = backend.shingles(batch, min_distinct=self._min_distinct, window=self._window)
        for number, one in enumerate(held):
            yield one, made.of(number)
