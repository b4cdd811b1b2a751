"""What the detection sends: findings, rows of requests and dead letters, counted as they go out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from detector.finding import Finding
from detector.streaming.tally import Tally
from ingest.broker import BrokerRecord, Message
from ingest.dead_letter import dead_letters, reason_of
from ingest.dead_letter_limit import DeadLetterLimit, DeadLetterSettings
from ingest.envelope import Unpacked
from ingest.packing import Packer
from ingest.packing_forms import ClearForm
from ingest.packing_settings import PackingSettings
from ingest.record_headers import EventTimes, headers
from ingest.schema import Encoding
from ingest.schema_records import Record, RequestRow
from ingest.topics import TopicNames

FINDING_SCHEMA: Final = "finding/1"


class Outgoing:
    """Makes the messages of one process. `now_ms` is wall clock and only dates dead letters."""

    def __init__(
        self,
        topics: TopicNames,
        tally: Tally,
        *,
        limit: DeadLetterSettings,
        packing: PackingSettings,
        now_ms: Callable[[], int],
    ) -> None:
        self._topics = topics
        self._tally = tally
        self._limit = DeadLetterLimit(limit)
        self._packing = packing
        self._now_ms = now_ms

    def findings(self, findings: Iterable[Finding]) -> Iterator[Message]:
        """Yield a message for each finding."""
        for finding in findings:
            self._tally.findings[
                finding.rule, finding.severity.value, finding.confidence.value
            ] += 1
            yield finding_message(finding, self._topics.findings)

    def rows(self, rows: Sequence[RequestRow]) -> list[Message]:
        """Return the rows in batches, each of one pool.

        Nothing is held back for a later call: what a row rests on may be committed after this one.
        """
        if not rows:
            return []
        packer = Packer(self._topics.requests, ClearForm(RequestRow), self._packing)
        messages = [message for row in rows for message in packer.add(row, 0.0)] + packer.drain()
        self._tally.rows_refused.update(packer.refused)
        return messages

    def refused(
        self, source: BrokerRecord, opened: Unpacked[Record], *, now: float
    ) -> list[Message]:
        """Return the dead letters of a message; call it for every message, good ones too.

        Raises TooManyDeadLettersError when too many of them were bad. `now` never goes back.
        """
        self._tally.dead_letters.update(map(reason_of, opened.rejected))
        self._limit.count(source.topic, opened, now)
        if not opened.rejected:
            return []
        topic = self._topics.dead_letter
        return dead_letters(source, opened, topic=topic, at_ms=self._now_ms())


def finding_message(finding: Finding, topic: str) -> Message:
    """Return the message of a finding; all versions of one finding are in one partition."""
    first_ms = min(finding.source.started_at_ms, finding.sink.started_at_ms)
    last_ms = max(finding.source.ended_at_ms, finding.sink.ended_at_ms)
    return Message(
        topic,
        msgspec.json.encode(finding),
        key=finding.kv_pool.encode(),
        headers=headers(Encoding.JSON.value, FINDING_SCHEMA, EventTimes(first_ms, last_ms)),
    )
