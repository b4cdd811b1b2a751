"""A sidecar over a broker in memory, that can be stopped dead and started again."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from detector.config.load import load_settings
from detector.config.root import Settings
from detector.errors import BrokerError
from detector.sidecar import Running, composed
from ingest.broker import BrokerRecord, Message, TopicPartition
from ingest.key_file import load_secret, new_secret
from ingest.memory_io import MemoryBroker, MemoryPublisher
from ingest.opening import open_records
from ingest.schema_records import RequestRow, SequenceRecord
from ingest.topics import topic_names
from tests.e2e.traffic import TENANT_RULES, write_config
from tests.unit.sent_sequences import Told, opened, replayed, told

PARTITIONS = 2
CHECKPOINT_MS = 1


class Gate:
    """An outlet over a broker in memory whose acknowledgements can be held back or refused."""

    def __init__(self, publisher: MemoryPublisher) -> None:
        self._publisher = publisher
        self.is_open = True
        self.refuses = False
        self._held: list[tuple[Future[int], Future[int]]] = []

    def send(self, message: Message) -> "Future[int]":
        future: Future[int] = Future()
        future.set_running_or_notify_cancel()
        if self.refuses:
            future.set_exception(BrokerError("is away", where="gate", hint="wait"))
            return future
        self._held.append((future, self._publisher.send(message)))
        if self.is_open:
            self.let_go()
        return future

    def let_go(self) -> None:
        """Acknowledge what was held back."""
        held, self._held = self._held, []
        for future, sent in held:
            if (error := sent.exception()) is not None:
                future.set_exception(error)
            else:
                future.set_result(sent.result())

    def flush(self, timeout_s: float) -> None:
        self._publisher.flush(timeout_s)

    def close(self) -> None:
        self._publisher.close()


class Station:
    """Starts sidecars, one after the other, on one checkpoint and one broker."""

    def __init__(
        self,
        folder: Path,
        *files: str,
        sealing: Mapping[str, int] | None = None,
        tenancy_rules: Sequence[Mapping[str, str]] = TENANT_RULES,
        **sidecar: Any,
    ) -> None:
        self.key = folder / "key"
        if not self.key.exists():
            new_secret(self.key)
        given = {
            "files": list(files),
            "checkpoint_file": str(folder / "checkpoint"),
            "checkpoint_ms": CHECKPOINT_MS,
            "rotate_wait_ms": 1,
            "grace_ms": 5_000,
            "engine": "engine-0",
            **sidecar,
        }
        config = folder / "config.json"
        write_config(
            config,
            sidecar=given,
            sealing=dict(sealing or {}),
            metrics={"port": 0},
            tenancy={"rules": tenancy_rules},
        )
        self.settings: Settings = load_settings(
            str(config), environment={}, key_file=str(self.key)
        ).settings
        self.topics = topic_names(self.settings.kafka.topic_prefix)
        self.broker = MemoryBroker(dict.fromkeys(self.topics, PARTITIONS))
        self.gate = Gate(self.broker.publisher())
        self._stack = ExitStack()
        self.running: Running | None = None

    def start(self, **more: Any) -> Running:
        """Start a sidecar."""
        self.gate = Gate(self.broker.publisher())
        self._stack = ExitStack()
        self.running = self._stack.enter_context(composed(self.settings, lambda: self.gate, **more))
        return self.running

    def turns(self, count: int = 3) -> None:
        """Let the sidecar work; its checkpoint is due in every turn."""
        assert self.running is not None
        for _ in range(count):
            time.sleep(CHECKPOINT_MS / 1000)
            self.running.sidecar.turn()

    def crash(self) -> None:
        """End it where it stands; nothing is written, nothing is sent any more."""
        self._stack.close()
        self.running = None

    def stop(self) -> None:
        """End it in order."""
        assert self.running is not None
        self.running.sidecar.end()
        self.crash()

    def messages(self, topic: str) -> Iterator[BrokerRecord]:
        """Yield what lies in a topic."""
        reader = self.broker.reader()
        reader.assign({TopicPartition(topic, number): 0 for number in range(PARTITIONS)})
        while records := reader.poll(0.0):
            yield from records

    def sequences(self) -> Iterator[SequenceRecord]:
        """Yield the sequences that the broker has."""
        return opened(self.messages(self.topics.sequences), load_secret(self.key))

    def rows(self) -> Iterator[RequestRow]:
        """Yield the rows that the broker has."""
        for message in self.messages(self.topics.requests):
            yield from open_records(RequestRow, message).records

    def told(self) -> Counter[Told]:
        """Return what the sequences say, with how often."""
        return Counter(map(told, self.sequences()))

    def expected(self, path: Path) -> set[Told]:
        """Return what a replay of the whole log says."""
        return set(replayed(path, self.settings, load_secret(self.key)))
