"""A stream in memory for tests: sequences are sealed and sent, runners come and go."""

from collections.abc import Iterable
from concurrent.futures import Future

import msgspec

from detector.errors import BrokerError
from detector.finding import Finding
from detector.index.memory import Memory
from detector.match.response_sketches import ResponseSketches
from detector.model import Kind, Sequence
from detector.settings import DetectionSettings
from detector.streaming.handler import StreamHandler
from ingest.broker import BrokerRecord, Message, TopicPartition
from ingest.dead_letter_limit import DeadLetterSettings
from ingest.memory_io import MemoryBroker, MemoryPublisher
from ingest.memory_runner import MemoryRunner
from ingest.packing import Packer
from ingest.packing_forms import SealedForm
from ingest.packing_settings import PackingSettings
from ingest.schema_records import SequenceRecord
from ingest.schema_sequence import to_record
from ingest.sealing import KeyRing
from ingest.stream_settings import StreamSettings
from ingest.topics import topic_names
from tests.unit.sequences import SETTINGS
from tests.unit.wire import RING

TOPICS = topic_names("t")


HOLD_MS = 400


class Stream:
    """A broker whose clock is that of the records: each is sent as the newest of them ends."""

    def __init__(self, *, partitions: int = 1, hold_ms: int = HOLD_MS) -> None:
        self.hold_ms = hold_ms
        self.now_ms = 0
        self.partitions = partitions
        self.broker = MemoryBroker(
            dict.fromkeys(TOPICS, partitions), now_s=lambda: self.now_ms / 1000
        )
        self.publisher: MemoryPublisher = self.broker.publisher()

    def send(self, sequences: Iterable[Sequence], *, per_message: int = 1) -> None:
        """Send sequences in the given order; see `packed`."""
        for at_ms, message in packed(sequences, per_message=per_message):
            self.send_raw(message, at_ms=at_ms)

    def send_raw(self, message: Message, *, at_ms: int | None = None) -> int:
        """Send any message; return its offset."""
        self.now_ms = self.now_ms if at_ms is None else max(self.now_ms, at_ms)
        return self.publisher.send(message).result()

    def handler(
        self,
        *,
        settings: DetectionSettings = SETTINGS,
        memory: Memory | None = None,
        sketches: ResponseSketches | None = None,
        limit: DeadLetterSettings | None = None,
        ring: KeyRing = RING,
    ) -> StreamHandler:
        """Return a new handler."""
        return StreamHandler(
            settings, topics=TOPICS, ring=lambda: ring,
            partitions=self.partitions, stream=StreamSettings(hold_ms=self.hold_ms),
            memory=memory, sketches=sketches, dead_letters=limit,
            clock=lambda: self.now_ms / 1000, now_ms=lambda: self.now_ms,
        )  # fmt: skip

    def runner(
        self,
        handler: StreamHandler | None = None,
        *,
        publisher: MemoryPublisher | None = None,
        batch_records: int = 3,
        idle_s: float | None = None,
    ) -> MemoryRunner:
        """Return a runner that is not started."""
        return MemoryRunner(
            self.handler() if handler is None else handler,
            reader=self.broker.reader(), publisher=publisher or self.publisher,
            topics=TOPICS.inputs, batch_records=batch_records, idle_s=idle_s,
            clock=lambda: self.now_ms / 1000,
        )  # fmt: skip

    def findings(self) -> list[Finding]:
        """Return every finding that was sent, in no special order over partitions."""
        decoder = msgspec.json.Decoder(Finding)
        return [decoder.decode(record.value or b"") for record in self.sent(TOPICS.findings)]

    def sent(self, topic: str) -> list[BrokerRecord]:
        """Return everything that lies in a topic."""
        reader = self.broker.reader()
        reader.assign({TopicPartition(topic, at): 0 for at in range(self.partitions)})
        found: list[BrokerRecord] = []
        while records := reader.poll(0.0):
            found += records
        return found


def packed(sequences: Iterable[Sequence], *, per_message: int = 1) -> list[tuple[int, Message]]:
    """Return messages of so many sequences of a pool each, with when they are sent.

    They leave in the order in which their last sequence came, none before its sequences ended.
    """
    packers: dict[str, tuple[Packer[SequenceRecord], list[Sequence]]] = {}
    made: list[tuple[int, Message]] = []
    now_ms = 0

    def close(packer: Packer[SequenceRecord], held: list[Sequence]) -> None:
        nonlocal now_ms
        now_ms = max([now_ms, *(one.ended_at_ms for one in held)])
        held.clear()
        made.extend((now_ms, message) for message in packer.drain())
        assert not packer.refused

    for one in sequences:
        if one.kv_pool not in packers:
            form = SealedForm(lambda: RING)
            packers[one.kv_pool] = (Packer(TOPICS.sequences, form, PackingSettings()), [])
        packer, held = packers[one.kv_pool]
        packer.add(to_record(one), 0.0)
        held.append(one)
        if len(held) == per_message:
            close(packer, held)
    for packer, held in packers.values():
        close(packer, held)
    return made


class FailingPublisher(MemoryPublisher):
    """A publisher whose broker goes away after so many messages."""

    def __init__(self, stream: Stream, *, after: int) -> None:
        super().__init__(stream.broker)
        self._left = after

    def send(self, message: Message) -> "Future[int]":
        """Send, or fail as a broker that is gone does."""
        if self._left:
            self._left -= 1
            return super().send(message)
        future: Future[int] = Future()
        future.set_exception(BrokerError("the broker went away", hint="start it again"))
        return future


def live_order(sequences: Iterable[Sequence]) -> list[Sequence]:
    """Return sequences as a live stream brings them: each when it ends, prompts first."""
    return sorted(
        sequences,
        key=lambda one: (one.ended_at_ms, one.kind is Kind.RESPONSE, one.tenant, one.request_id),
    )


def surest(findings: Iterable[Finding]) -> dict[str, Finding]:
    """Return of each finding the version that rests on the most tokens."""
    best: dict[str, Finding] = {}
    for one in findings:
        known = best.get(one.id)
        if known is None or one.evidence.unexplained_tokens > known.evidence.unexplained_tokens:
            best[one.id] = one
    return best
