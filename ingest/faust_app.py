"""The Faust worker: reads the inputs in micro-batches and commits exactly what is finished.

Three rules keep it from losing records, and tests/integration/test_faust_rules.py shows what each
of them prevents: values stay raw bytes until the handler decodes them; `noack_take` hands batches
over and they are let go of only afterwards; no exception leaves the loop, the process ends instead.
"""

import asyncio
import logging
import os
import sys
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NoReturn, cast

import faust
from faust.types import TP
from faust.types.events import EventT
from faust.types.streams import StreamT

from detector.errors import BleedwatchError, BrokerError, StreamError
from ingest.broker import BrokerRecord, Message, Reader, TopicPartition
from ingest.client_logs import hold_client_logs
from ingest.faust_overrides import StreamApp
from ingest.kafka_credentials import Credentials
from ingest.ledger import Ledger
from ingest.stream import Handler
from ingest.turns import Turns

Event = EventT[bytes]

_log = logging.getLogger(__name__)

FATAL: Final = 70
"""Exit code of a worker that must not go on: EX_SOFTWARE of sysexits.h."""

BATCH_S: Final = 0.05
"""A batch is handed over when it is full or after so many seconds, whichever comes first."""

SETTLE_S: Final = 5.0
"""How long a stop waits for the running batch."""

STOP_S: Final = 10.0
"""How long a stop may take after that: with SETTLE_S half of what Kubernetes grants."""

QUEUE_RECORDS: Final = 64
"""Records that Faust reads ahead; of 256 KB each, 16 MB."""

FETCH_BYTES: Final = 4 * 2**20
"""Bytes that one request may fetch of a partition; a larger single record still comes."""

FOREVER_S: Final = 20 * 86_400.0
"""Close to the longest that Kafka's milliseconds in 31 bits allow."""

TICK_S: Final = 0.1


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """What a worker needs to know of its cluster and of the group that shares the work."""

    servers: Sequence[str]
    topics: Sequence[str]
    """The input topics; the first leads when a window is rebuilt."""
    group: str
    credentials: Credentials = field(repr=False)
    session_s: float = 30.0
    """A worker that is silent for this long loses its partitions."""
    idle_s: float = 0.4
    """A partition without anything new for this long is finished with `Handler.idle`."""
    batch_records: int = 64
    """Records that are taken at once at most, of all partitions together."""
    max_poll_s: float = FOREVER_S
    """A worker that has read nothing for this long leaves the group and never comes back."""
    commit_s: float = 1.0
    """How often is committed: about this much is repeated after a crash."""
    max_message_bytes: int = 4 * 2**20
    delivery_s: float = 60.0
    """How long one attempt to send may take."""


class FaustWorker:
    """One worker of a group. `reader` must be its own: it is used from the handler's thread."""

    def __init__(
        self,
        handler: Handler,
        options: WorkerOptions,
        *,
        reader: Reader,
        beat: Callable[[], None] = lambda: None,
        warmed_up: Callable[[int, float, int], None] = lambda _partition, _seconds, _records: None,
    ) -> None:
        self._options = options
        self._reader = reader
        self._ledger = Ledger(options.topics)
        self._turns = Turns(
            handler,
            self._ledger,
            send=self._send,
            reader=reader,
            beat=beat,
            warmed_up=warmed_up,
        )
        hold_client_logs()
        self._app = _app(options)
        self._app.assignments = self._turns
        topic = self._app.topic(*options.topics, key_type=bytes, value_type=bytes)
        self._app.agent(topic, name="worker", concurrency=1)(self._consume)

    @property
    def assigned(self) -> bool:
        """True once the group has said which partitions are ours, be it none."""
        return self._turns.assigned

    def warming(self) -> list[int]:
        """Return the partitions whose window is still being rebuilt; from any thread."""
        return [partition for partition, held in self._ledger if not held.warm]

    def end_of(self, at: TopicPartition) -> int | None:
        """Return the offset that the next record of an input gets, None if unknown; any thread."""
        try:
            return self._app.consumer.highwater(TP(*at))
        except Exception:  # noqa: BLE001 - not assigned any more, not started, being stopped
            return None

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, then commit, leave the group and return.

        Raises BrokerError if the brokers cannot be reached or a topic is missing. Afterwards the
        process ends with FATAL whenever it must not go on.
        """
        await asyncio.get_running_loop().run_in_executor(None, self._check_topics)
        self._app.loop = asyncio.get_running_loop()
        self._app.finalize()
        try:
            await self._app.maybe_start()
        except Exception as error:
            raise BrokerError(
                f"the worker could not join its group: {type(error).__name__}",
                where=",".join(self._options.servers),
                hint="check that the brokers are up and that this user may use the group",
            ) from error
        ticks = asyncio.create_task(self._tick())
        while not stop.is_set():
            if self._app.crashed:
                _end(self._app.crash_reason or StreamError("Faust stopped by itself"))
            await asyncio.sleep(TICK_S)
        ticks.cancel()
        await self._stop()

    def _check_topics(self) -> None:
        counts = {topic: self._reader.partitions(topic) for topic in self._options.topics}
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{topic} {count}" for topic, count in counts.items())
            raise BrokerError(
                f"the inputs differ in partitions: {told}",
                where=",".join(self._options.servers),
                hint="make them anew with the same number: bleedwatch topics check explains it",
            )

    async def _consume(self, stream: "StreamT[bytes]") -> None:
        """Carry batch after batch; never returns by an exception while the worker runs."""
        try:
            async for events in _batches(stream, self._options.batch_records):
                await self._turns.take(partial(self._records, events))
                for event in events:
                    await stream.ack(event)
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, Faust must not see it
            _end(error)

    def _records(self, events: Iterable[Event]) -> list[BrokerRecord]:
        """Return the records of a batch, without those from before partitions were moved."""
        generation = self._app.consumer_generation_id
        return [_record(e) for e in events if e.message.generation_id == generation]

    async def _tick(self) -> None:
        try:
            while True:
                await asyncio.sleep(TICK_S)
                await self._turns.idle(self._caught_up, self._options.idle_s)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - as above: nothing was noted as done
            _end(error)

    def _caught_up(self, partition: int) -> bool:
        positions = self._ledger.positions(partition)
        ends = {at: self.end_of(at) for at in positions}
        return all(end is not None and positions[at] >= end for at, end in ends.items())

    async def _send(self, messages: Sequence[Message]) -> int:
        """Send in order; return how many the broker acknowledged before the first that failed."""
        producer = self._app.producer
        pending: list[Awaitable[Any]] = []
        try:
            for m in messages:
                headers = list(m.headers)
                pending.append(
                    await producer.send(m.topic, m.key, m.value, m.partition, None, headers)
                )
        except Exception as error:  # noqa: BLE001 - the client's own errors, whatever they are
            _log.warning("sending to %s failed: %s", messages[len(pending)].topic, _kind(error))
        results = await asyncio.gather(*pending, return_exceptions=True)
        for acknowledged, result in enumerate(results):
            if isinstance(result, BaseException):
                where = messages[acknowledged].topic
                _log.warning("%s did not take a record: %s", where, _kind(result))
                return acknowledged
        return len(results)

    async def _stop(self) -> None:
        """Commit and leave the group; without an answer from the brokers just end."""
        await self._turns.settle(SETTLE_S)
        try:
            async with asyncio.timeout(STOP_S):
                await self._app.consumer.commit()
                await self._app.stop()
        except TimeoutError:
            _log.warning("the group could not be left within %g s: ending without", STOP_S)
            logging.shutdown()
            os._exit(0)
        self._turns.close()


def _batches(stream: StreamT[bytes], most: int) -> AsyncGenerator[Sequence[Event], None]:
    """Return the batches of a stream; its interface lacks the method and every stream has it."""
    batches: AsyncGenerator[Sequence[Event], None]
    batches = cast(faust.Stream[Event], stream).noack_take(most, within=BATCH_S)
    return batches


def _record(event: Event) -> BrokerRecord:
    m = event.message
    headers = m.headers.items() if isinstance(m.headers, Mapping) else m.headers or ()
    return BrokerRecord(
        topic=m.topic,
        partition=m.partition,
        offset=m.offset,
        key=m.key,
        value=m.value,
        headers=tuple((str(name), bytes(value or b"")) for name, value in headers),
        timestamp_ms=round(m.timestamp * 1000),
    )


def _app(options: WorkerOptions) -> StreamApp:
    """Return the app; every setting here that is not the cluster's has its reason beside it."""
    return StreamApp(
        options.group,
        broker=[f"kafka://{server}" for server in options.servers],
        broker_credentials=_faust_credentials(options.credentials),
        key_serializer="raw",
        value_serializer="raw",
        store="memory://",
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        table_standby_replicas=1,  # Faust's own assignor: the inputs of a partition stay together
        agent_supervisor="mode.CrashingSupervisor",
        stream_wait_empty=False,  # records wait for others: a rebalance must not wait for them
        stream_buffer_maxsize=QUEUE_RECORDS,
        stream_processing_timeout=FOREVER_S,  # its warnings are false alarms on quiet partitions
        broker_commit_livelock_soft_timeout=FOREVER_S,
        broker_max_poll_interval=options.max_poll_s,  # a worker without work stays
        broker_session_timeout=options.session_s,
        broker_heartbeat_interval=options.session_s / 10,
        broker_request_timeout=max(60.0, options.session_s),
        broker_commit_interval=options.commit_s,
        consumer_auto_offset_reset="earliest",  # the latest would skip what came before the start
        consumer_max_fetch_size=FETCH_BYTES,
        producer_compression_type="zstd",
        producer_max_request_size=options.max_message_bytes,
        producer_request_timeout=options.delivery_s,
    )


def _faust_credentials(given: Credentials) -> faust.auth.Credentials | None:
    if given.protocol.startswith("SASL_"):
        return faust.SASLCredentials(
            username=given.username,
            password=given.password,
            mechanism=given.mechanism,
            ssl_context=given.ssl_context,
        )
    return faust.SSLCredentials(given.ssl_context) if given.ssl_context is not None else None


def _kind(error: BaseException) -> str:
    """Return what may be told of an error: of one that is not ours the kind, not the message."""
    return str(error) if isinstance(error, BleedwatchError) else type(error).__name__


def _end(error: BaseException) -> NoReturn:
    """End the process at once: what was not committed comes again, nothing else is lost."""
    _log.critical("the worker ends: %s", _kind(error))
    for frame in traceback.extract_tb(error.__traceback__)[-8:]:
        _log.critical("  at %s:%s in %s", frame.filename, frame.lineno, frame.name)
    logging.shutdown()
    sys.stderr.flush()
    os._exit(FATAL)
