"""Past traffic for running workers: its first showings go to the owners of their ranges."""

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass

from detector.batches import Batches
from detector.config.root import Settings
from detector.index.selection import sampling_of
from detector.index.shared_memory import SharedMemory
from detector.model import Sequence
from detector.pipeline import Detector
from detector.reading import OnProgress, Reading
from detector.service import learn
from detector.sketch.tag_keys import TagKeys
from detector.sketch.token_table import Secret, TokenTable
from detector.streaming.exchange import Exchange
from ingest.broker import Publisher
from ingest.coverage import Coverage

TELL_EVERY = 256
"""Sequences between two rounds of telling: some 100,000 shingles, or 1 MB in all ranges."""

TELL_MS = 600_000
"""Event time between two rounds at most: a record is dated by its end, and from the first date on
the memory of a worker counts as filled."""

FLUSH_S = 60.0
"""How long the last acknowledgements are waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What was read and told. A shingle is told once for each tenant that has shown it."""

    requests: int
    sequences: int
    shingles: int
    records: int
    coverage: Coverage


class CommonnessLoader:
    """Reads logs as a history is read and tells what they show; `ranges` is of the topics."""

    def __init__(
        self,
        settings: Settings,
        secret: Secret,
        publisher: Publisher,
        *,
        ranges: int,
        writer: bytes,
    ) -> None:
        keys = secret.keys()
        commonness = settings.detection.commonness
        self._settings = settings
        self._publisher = publisher
        self._table = TokenTable(keys.hash_key, key_id=keys.key_id)
        self._memory = SharedMemory(commonness, TagKeys(keys.tag_key))
        self._exchange = Exchange(
            self._memory, commonness, key_id=keys.key_id,
            sampling=sampling_of(settings.detection.index), ranges=ranges,
            prefix=settings.kafka.topic_prefix, writer=writer,
        )  # fmt: skip
        self._sequences = 0
        self._records = 0

    def load(
        self, paths: Items[str], *, log_format: str = "auto", on_progress: OnProgress | None = None
    ) -> Loaded:
        """Tell everything that the files show; returns once the broker has acknowledged it.

        Raises InputError for a file that cannot be read, BrokerError.
        """
        detection = self._settings.detection
        reading = Reading(self._settings, self._table)
        read = reading.sequences(paths, log_format=log_format, on_progress=on_progress)
        learn(
            Detector(detection, memory=self._memory),
            self._telling(read),
            window=detection.window,
            batches=Batches(detection),
        )
        self._tell()
        self._publisher.flush(FLUSH_S)
        return Loaded(
            requests=reading.requests,
            sequences=self._sequences,
            shingles=self._memory.exchanged.told,
            records=self._records,
            coverage=reading.coverage,
        )

    def _telling(self, sequences: Iterable[Sequence]) -> Iterator[Sequence]:
        """Pass sequences on; what the detector has learned of them meanwhile is told."""
        told_ms: int | None = None
        for sequence in sequences:
            self._sequences += 1
            yield sequence
            began_ms = sequence.started_at_ms
            told_ms = began_ms if told_ms is None else told_ms
            if self._sequences % TELL_EVERY == 0 or began_ms - told_ms >= TELL_MS:
                self._tell()
                told_ms = began_ms

    def _tell(self) -> None:
        for message in self._exchange.messages():
            self._publisher.send(message)
            self._records += 1
