"""Follows the findings topic in a thread: when each finding came, and its last version."""

import threading
import time
from typing import Final, Self

import msgspec

from detector.finding import Finding
from ingest.broker import Reader, TopicPartition

POLL_SECONDS: Final = 0.05

JOIN_SECONDS: Final = 10.0


class FindingWatch:
    """The findings that have come since the watch began, whatever their number of versions."""

    def __init__(self, reader: Reader, topic: str) -> None:
        inputs = [TopicPartition(topic, number) for number in range(reader.partitions(topic))]
        reader.assign({at: reader.end(at) for at in inputs})
        self._reader = reader
        self._decode = msgspec.json.Decoder(Finding).decode
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="watch", daemon=True)
        self.came_at: dict[str, float] = {}
        """When the first version of a finding was read from the topic, Unix seconds."""
        self.findings: dict[str, Finding] = {}
        """The last version of each finding: the one that rests on the most tokens."""
        self.messages = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(JOIN_SECONDS)
        self._reader.close()

    def await_quiet(self, seconds: float, *, at_most: float) -> None:
        """Wait until nothing has come for so long."""
        until = time.monotonic() + at_most
        seen, since = self.messages, time.monotonic()
        while time.monotonic() < until and time.monotonic() - since < seconds:
            time.sleep(POLL_SECONDS)
            if self.messages != seen:
                seen, since = self.messages, time.monotonic()

    def _follow(self) -> None:
        while not self._ended.is_set():
            for record in self._reader.poll(POLL_SECONDS):
                finding = self._decode(record.value or b"")
                self.came_at.setdefault(finding.id, time.time())
                self.findings[finding.id] = finding
                self.messages += 1
