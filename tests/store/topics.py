"""The topics of results in memory, as workers fill them and as an api reads them."""

from collections.abc import Callable, Iterable, Sequence

from sqlalchemy import Connection

from detector.api.recorder import Recorder
from detector.finding import Finding
from detector.streaming.outgoing import finding_message
from exporters.incidents.model import Change
from exporters.store.database import Database
from exporters.store.heartbeats import Hear
from ingest.broker import Message
from ingest.memory_io import MemoryBroker
from ingest.packing import Packer
from ingest.packing_forms import ClearForm
from ingest.packing_settings import PackingSettings
from ingest.schema_records import RequestRow
from ingest.topics import topic_names
from tests.store.made import SETTINGS

TOPICS = topic_names("t")
PARTITIONS = 2


class Results:
    """A broker with findings and rows of requests."""

    def __init__(self) -> None:
        self.broker = MemoryBroker(dict.fromkeys(TOPICS, PARTITIONS), now_s=lambda: 0.0)
        self._publisher = self.broker.publisher()

    def send(self, *findings: Finding) -> None:
        """Send findings."""
        for finding in findings:
            self.send_raw(finding_message(finding, TOPICS.findings))

    def send_rows(self, *rows: RequestRow) -> None:
        """Send rows of requests, packed."""
        for message in packed(rows):
            self.send_raw(message)

    def send_raw(self, message: Message) -> None:
        """Send anything."""
        self._publisher.send(message).result()

    def recorder(
        self,
        database: Database,
        *,
        announce: Callable[[Connection, Sequence[Change]], object] = lambda _on, _changes: None,
        hear: Hear = lambda _on, _beats: None,
        now_ms: Callable[[], int] = lambda: 0,
        resumes: bool = True,
    ) -> Recorder:
        """Return a recorder that has started."""
        recorder = Recorder(
            database,
            self.broker.reader(),
            topics=TOPICS,
            settings=SETTINGS,
            announce=announce,
            hear=hear,
            now_ms=now_ms,
            resumes=resumes,
        )
        recorder.start()
        return recorder


def packed(rows: Iterable[RequestRow]) -> list[Message]:
    """Return rows as a worker sends them."""
    packer = Packer(TOPICS.requests, ClearForm(RequestRow), PackingSettings())
    return [message for row in rows for message in packer.add(row, 0.0)] + packer.drain()


def request(name: str, at_s: float = 0, **more: object) -> RequestRow:
    """Return the row of a request."""
    values: dict[str, object] = {
        "tenant": "acme",
        "request_id": name,
        "kv_pool": "a",
        "engine": "e",
        "model": "m",
        "started_at_ms": int(at_s * 1000),
        **more,
    }
    return RequestRow(**values)  # type: ignore[arg-type]
