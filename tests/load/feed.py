"""Publishes generated traffic at a given rate; notes when each planted bleed was acknowledged."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Final

from detector.model import Sequence
from ingest.broker import Message, Publisher
from ingest.envelope import read_index
from ingest.packing import Packer
from ingest.schema_records import SequenceRecord
from ingest.schema_sequence import to_record
from tests.load.traffic import REQUEST_TOKENS, Planted, Traffic

TICK_SECONDS: Final = 0.02
"""A tenth of what a packer lingers."""

FLUSH_SECONDS: Final = 30.0


class Feed:
    """Traffic on its way: made, packed, sealed and published as a sidecar would."""

    def __init__(
        self,
        traffic: Traffic,
        packer: "Packer[SequenceRecord]",
        publisher: Publisher,
        *,
        tokens_per_second: int,
        bleeds_per_second: float = 0.0,
    ) -> None:
        self._traffic = traffic
        self._packer = packer
        self._publisher = publisher
        self._requests_per_second = tokens_per_second / REQUEST_TOKENS
        self._bleeds_per_second = bleeds_per_second
        self._began = time.monotonic()
        self._requests = 0
        self._bleeds = 0
        self._added: dict[str, int] = {}
        self._packed: dict[str, int] = {}
        self._waiting: dict[str, deque[tuple[int, Planted]]] = {}
        self._unsettled: deque[Future[int]] = deque()
        self.tokens = 0
        self.messages = 0
        self.bytes = 0
        self.acknowledged: dict[str, float] = {}
        """When the broker acknowledged the sink of a planted bleed, by finding id; Unix seconds."""

    def run(self, seconds: float, on_tick: Callable[[], None] = lambda: None) -> None:
        """Publish for so long; raises BrokerError if a message was refused."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            began = time.monotonic()
            self._tick(began - self._began)
            on_tick()
            time.sleep(max(0.0, began + TICK_SECONDS - time.monotonic()))

    def finish(self) -> None:
        """Send what is still held and wait for every acknowledgement."""
        self._send(self._packer.drain())
        self._publisher.flush(FLUSH_SECONDS)
        self._settle()

    def _tick(self, elapsed: float) -> None:
        now_ms = time.time_ns() // 1_000_000
        due = int(elapsed * self._requests_per_second) - self._requests
        self._requests += due
        for prompt in self._traffic.prompts(due, now_ms):
            self._add(prompt)
        for response in self._traffic.responses(now_ms):
            planted = None
            if self._bleeds < elapsed * self._bleeds_per_second:
                planted = self._traffic.bleed(response)
                self._bleeds += planted is not None
            self._add(response, planted)
        self._send(self._packer.due(time.monotonic()))
        self._settle()

    def _add(self, sequence: Sequence, planted: Planted | None = None) -> None:
        pool = sequence.kv_pool
        number = self._added[pool] = self._added.get(pool, 0) + 1
        if planted is not None:
            self._waiting.setdefault(pool, deque()).append((number, planted))
        self.tokens += len(sequence.token_hashes)
        self._send(self._packer.add(to_record(sequence), time.monotonic()))

    def _send(self, messages: Iterable[Message]) -> None:
        for message in messages:
            future = self._publisher.send(message)
            self._unsettled.append(future)
            self.messages += 1
            self.bytes += len(message.value or b"")
            for planted in self._sinks_in(message):
                future.add_done_callback(partial(self._acknowledge, planted.finding_id))

    def _sinks_in(self, message: Message) -> list[Planted]:
        """Return the planted sinks of a batch: batches of a pool keep the order of its records."""
        if not self._bleeds_per_second:
            return []
        index = read_index(message.value or b"")
        packed = self._packed[index.kv_pool] = self._packed.get(index.kv_pool, 0) + len(
            index.records
        )
        waiting = self._waiting.get(index.kv_pool, deque())
        found = []
        while waiting and waiting[0][0] <= packed:
            found.append(waiting.popleft()[1])
        return found

    def _acknowledge(self, finding_id: str, future: "Future[int]") -> None:
        if future.exception() is None:
            self.acknowledged[finding_id] = time.time()

    def _settle(self) -> None:
        """Let go of what is acknowledged; raises what a broker has refused."""
        while self._unsettled and self._unsettled[0].done():
            self._unsettled.popleft().result()
