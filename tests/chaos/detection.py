"""Bleeds that arrive while the real program is in trouble, and the judgement of what it found."""

import contextlib
import random
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from detector.errors import BrokerError
from detector.pipeline import Detector
from detector.settings import DetectionSettings
from ingest.broker import Message, TopicPartition
from ingest.kafka_io import KafkaPublisher
from ingest.kafka_settings import KafkaSettings
from ingest.key_file import new_secret
from tests.chaos.traffic import RECOVERY_S, RETRY_S, Round
from tests.streams.cluster import committed_of, now_ms
from tests.streams.process import until
from tests.streams.program import START_S, Program
from tests.streams.real import STEP_MS, bleeding, make_cluster

COUNT = 120
LAG = 20
"""Responses come as many prompts after their own: whoever takes over must rebuild the window."""

PAUSE_S = 0.05


class Persistent:
    """Sends a message until it is acknowledged, as a sidecar does; for one thread."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._publisher: KafkaPublisher | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._publisher is not None:
            self._publisher.close()

    def send(self, message: Message) -> None:
        """Return once the broker has it."""
        while not self._is_taken(message):
            time.sleep(RETRY_S)

    def _is_taken(self, message: Message) -> bool:
        with contextlib.suppress(BrokerError):
            if self._publisher is None:
                self._publisher = KafkaPublisher(self._settings)
            self._publisher.send(message).result(RECOVERY_S)
            return True
        return False


class Bleeds:
    """One installation with its traffic: half of it is sent, the rest after `go_on`.

    `wanted` are the findings of a detector that nothing disturbs. `doubled` sends some messages
    again.
    """

    def __init__(self, bootstrap: str, folder: Path, seed: int, *, doubled: bool = False) -> None:
        name = f"bleeds-{seed}-{time.time_ns()}"
        self._folder = folder
        key_file = folder / name
        new_secret(key_file)
        self._cluster = make_cluster(bootstrap, name, key_file)
        start_ms = now_ms() - 2 * (COUNT + LAG) * STEP_MS
        sequences = bleeding(seed, COUNT, start_ms, lag=LAG)
        judged = Detector(DetectionSettings())
        self.wanted = {one.id for sequence in sequences for one in judged.observe(sequence)}
        messages = self._cluster.packed(sequences)
        times = random.Random(seed).choices((1, 2, 3) if doubled else (1,), k=len(messages))
        half = len(messages) // 2
        pairs = list(zip(messages, times, strict=True))
        self._first, self._second = pairs[:half], pairs[half:]
        self.sent = 0
        """Messages, those that were sent again included."""
        self._may_go_on = threading.Event()

    def program(self, name: str) -> Program:
        """Return a worker, to be used in a `with` block."""
        return Program(self._cluster, self._folder / f"{self._cluster.key_file.name}-{name}.log")

    @contextlib.contextmanager
    def arriving(self) -> Iterator[None]:
        """Send from a thread; all is sent when the block ends."""
        sender = threading.Thread(target=self._send, daemon=True)
        sender.start()
        try:
            yield
        finally:
            self.go_on()
            sender.join(RECOVERY_S)

    def go_on(self) -> None:
        """Let the second half be sent."""
        self._may_go_on.set()

    def until_found(self) -> None:
        """Wait for the first finding."""
        until(lambda: bool(self._cluster.findings()), START_S)

    def is_under_way(self) -> bool:
        """Tell whether some findings were made and some are still to come."""
        return 0 < len(self._cluster.findings()) < len(self.wanted)

    def is_pending(self, sent: int) -> bool:
        """Tell whether it is under way, and not all of the `sent` messages are committed."""
        prefix = self._cluster.settings.topic_prefix
        committed = committed_of(self._cluster.settings, f"{prefix}.workers")
        done = sum(committed.get(TopicPartition(f"{prefix}.sequences", at), 0) for at in (0, 1))
        return self.is_under_way() and done < sent

    def judge(self, scenario: str, *, counted: bool) -> Round:
        """Wait until all is found that must be; the trouble is over now."""
        healed, flowing, found = time.monotonic(), None, self._cluster.findings()
        before = found.keys()
        self.go_on()
        while not self.wanted <= set(found) and time.monotonic() < healed + RECOVERY_S:
            time.sleep(0.2)
            found = self._cluster.findings()
            if flowing is None and found.keys() > before:
                flowing = time.monotonic()
        return Round(
            scenario=scenario,
            counted=counted,
            findings=len(self.wanted),
            lost=len(self.wanted - set(found)),
            strange=len(set(found) - self.wanted),
            repeated=sum(count > 1 for count in found.values()),
            recovery_s=0.0 if flowing is None else flowing - healed,
        )

    def _send(self) -> None:
        with Persistent(self._cluster.settings) as publisher:
            self._send_slowly(self._first, publisher)
            self._may_go_on.wait()
            self._send_slowly(self._second, publisher)

    def _send_slowly(self, pairs: Sequence[tuple[Message, int]], publisher: Persistent) -> None:
        for message, times in pairs:
            for _ in range(times):
                publisher.send(message)
                self.sent += 1
            time.sleep(PAUSE_S)
