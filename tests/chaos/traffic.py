"""Records that are sent while something goes wrong, and the judgement of what came out."""

import contextlib
import random
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple, Self

from kafka import KafkaProducer
from kafka.errors import KafkaError

from tests.streams.cluster import Sent, Stream, now_ms, pairs
from tests.streams.process import until

RECORDS = 400
KEYS = 60
STEP_MS = 10
PAUSE_S = 0.02
"""Between two records: a round's records are under way for eight seconds."""

RECOVERY_S = 90.0
"""A round that has not recovered by then has lost what is missing."""

DELIVERY_MS = 10_000
RETRY_S = 0.2


class Round(NamedTuple):
    """What one round showed."""

    scenario: str
    counted: bool
    """False if the moment that was meant was missed."""
    findings: int
    lost: int
    strange: int
    """Findings that an undisturbed run does not have; once repeats are dropped, duplicates too."""
    repeated: int
    """Findings that are on the topic more than once."""
    recovery_s: float
    """From the end of the trouble to the first new finding."""


def made_up(seed: int, partitions: int) -> list[Sent]:
    """Return records, in the order of their event times in each partition."""
    chance = random.Random(seed)
    start = now_ms() - RECORDS * STEP_MS
    return [
        Sent(chance.randrange(partitions), start + i * STEP_MS, f"k{chance.randrange(KEYS)}")
        for i in range(RECORDS)
    ]


class Sender:
    """Sends records from a thread, slowly, and keeps trying while the broker is away."""

    def __init__(self, stream: Stream, records: Sequence[Sent]) -> None:
        self._stream = stream
        self._records = records
        self._thread = threading.Thread(target=self._send, daemon=True)
        self.sent = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._thread.join(RECOVERY_S)

    def wait_for(self, share: float) -> None:
        """Wait until this share of the records is sent."""
        until(lambda: self.sent >= share * len(self._records))

    def _send(self) -> None:
        """Send one after the other, each until it is acknowledged, as a sidecar does.

        A producer that has failed is replaced: it may have lost its way to the broker for good.
        """
        producer = self._connected()
        for one in self._records:
            while not self._is_taken(producer, one):
                with contextlib.suppress(KafkaError):
                    producer.close(timeout=0)
                producer = self._connected()
            self.sent += 1
            time.sleep(PAUSE_S)
        producer.close()

    def _connected(self) -> KafkaProducer:
        while True:
            try:
                return KafkaProducer(
                    bootstrap_servers=self._stream.settings.servers,
                    delivery_timeout_ms=DELIVERY_MS,
                    request_timeout_ms=DELIVERY_MS // 2,
                    max_block_ms=DELIVERY_MS,
                    reconnect_backoff_max_ms=1000,
                )
            except KafkaError:
                time.sleep(RETRY_S)

    def _is_taken(self, producer: KafkaProducer, one: Sent) -> bool:
        try:
            producer.send(
                self._stream.inputs[0],
                f"{one.event_ms} {one.key}".encode(),
                partition=one.partition,
                timestamp_ms=one.event_ms,
            ).get(DELIVERY_MS / 1000)
        except KafkaError:
            return False
        return True


def judge(
    scenario: str, stream: Stream, records: Sequence[Sent], healed: float, *, counted: bool = True
) -> Round:
    """Wait until all is found that an undisturbed run finds; `healed` is when the trouble ended."""
    wanted = pairs(records)
    deadline = time.monotonic() + RECOVERY_S
    before = found = stream.found()
    flowing = None
    while not wanted <= set(found) and time.monotonic() < deadline:
        time.sleep(0.1)
        found = stream.found()
        if flowing is None and found.keys() > before.keys():
            flowing = time.monotonic()
    return Round(
        scenario=scenario,
        counted=counted,
        findings=len(wanted),
        lost=len(wanted - set(found)),
        strange=len(set(found) - wanted),
        repeated=sum(count > 1 for count in found.values()),
        recovery_s=0.0 if flowing is None else flowing - healed,
    )
