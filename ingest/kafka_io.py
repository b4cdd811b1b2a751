"""Kafka as a broker: a publisher that loses and doubles nothing, and a reader without a group."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Final

from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import KafkaError
from kafka.producer.future import RecordMetadata
from kafka.structs import OffsetAndTimestamp

from detector.errors import BrokerError
from ingest.broker import BrokerRecord, Message, TopicPartition
from ingest.in_flight import InFlight
from ingest.kafka_errors import broker_error, connecting
from ingest.kafka_settings import KafkaSettings
from ingest.partitioning import message_bytes

CLOSE_TIMEOUT_S: Final = 5.0
"""How long closing waits for what is under way."""

BATCH_BYTES: Final = 512 * 1024
"""Most bytes of records of one partition that travel together: two packed records of 256 KiB."""

MAX_POLL_RECORDS: Final = 500

_REFUSED = (KafkaError, ValueError, TypeError, AssertionError)
"""How kafka-python refuses a message at once: too large, no such partition, closed, no topic."""


class KafkaPublisher:
    """A Publisher with acks=all and idempotence: every record once, in order for each partition.

    Any thread may send. Raises BrokerError if no broker answers within the time to connect.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._in_flight = InFlight(settings.in_flight_bytes)
        self._failed = 0
        self._failed_lock = threading.Lock()
        with connecting(settings) as options:
            self._producer = KafkaProducer(
                **options,
                acks="all",
                enable_idempotence=True,
                compression_type="zstd",
                linger_ms=settings.linger_ms,
                batch_size=BATCH_BYTES,
                max_request_size=settings.max_message_bytes,
                max_block_ms=settings.connect_timeout_ms,
                delivery_timeout_ms=settings.delivery_timeout_ms,
                request_timeout_ms=min(30_000, settings.delivery_timeout_ms - settings.linger_ms),
                allow_auto_create_topics=False,
                metrics_enabled=False,
            )

    def send(self, message: Message) -> "Future[int]":
        """Queue a message; the future gives its offset once all replicas in sync hold it.

        Blocks while the bound on unacknowledged bytes is reached. The future raises BrokerError.
        """
        future: Future[int] = Future()
        future.set_running_or_notify_cancel()
        size = message_bytes(message)
        self._in_flight.enter(size)

        def acknowledged(metadata: RecordMetadata) -> None:
            self._in_flight.leave(size)
            future.set_result(metadata.offset)

        def failed(error: BaseException) -> None:
            self._in_flight.leave(size)
            with self._failed_lock:
                self._failed += 1
            future.set_exception(broker_error(error, where=f"topic {message.topic}"))

        try:
            sent = self._producer.send(
                message.topic,
                value=message.value,
                key=message.key,
                headers=list(message.headers),
                partition=message.partition,
            )
        except _REFUSED as error:
            failed(error)
        else:
            sent.add_callback(acknowledged)
            sent.add_errback(failed)
        return future

    def flush(self, timeout_s: float) -> None:
        """Wait until everything sent is acknowledged.

        Raises BrokerError if it is not in time, or if a message has failed since the last flush.
        """
        try:
            self._producer.flush(timeout_s)
        except KafkaError as error:
            raise broker_error(error, where="flush") from None
        with self._failed_lock:
            failed, self._failed = self._failed, 0
        if failed:
            raise BrokerError(
                f"{failed} messages were not acknowledged",
                where="Kafka",
                hint="the future of each says why",
            )

    def close(self) -> None:
        """Flush what can be flushed within a few seconds and let go of the connections."""
        try:
            self._producer.flush(CLOSE_TIMEOUT_S)
        except KafkaError:
            # What is left fails its futures; closing would flush again and stop half way.
            self._producer._sender.force_close()
        self._producer.close(timeout=CLOSE_TIMEOUT_S)


class KafkaReader:
    """A Reader that assigns partitions itself; for one thread.

    A broker that goes away is waited for in `poll`; every question about offsets raises BrokerError
    when it is not answered within the time to connect.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._timeout_ms = settings.connect_timeout_ms
        with connecting(settings) as options:
            self._consumer = KafkaConsumer(
                **options,
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                allow_auto_create_topics=False,
                max_poll_records=MAX_POLL_RECORDS,
                max_partition_fetch_bytes=settings.max_message_bytes,
                metrics_enabled=False,
            )

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic; raises BrokerError if there is none."""
        where = f"topic {topic}"
        try:
            found = self._consumer.partitions_for_topic(topic)
        except KafkaError as error:
            raise broker_error(error, where=where) from None
        if not found:
            raise BrokerError(
                "there is no such topic", where=where, hint="bleedwatch topics create makes it"
            )
        return len(found)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read exactly these partitions from these offsets; raises BrokerError if one is not there.

        From an offset that is no longer kept, reading goes on at the first that is.
        """
        partitions = {self._existing(at): offset for at, offset in positions.items()}
        self._consumer.assign(list(partitions))
        for partition, offset in partitions.items():
            self._consumer.seek(partition, offset)

    def poll(self, timeout_s: float) -> Sequence[BrokerRecord]:
        """Return what has come, in order in each partition, at once or within the time-out."""
        try:
            found = self._consumer.poll(timeout_ms=int(timeout_s * 1000))
        except KafkaError as error:
            raise broker_error(error, where="poll") from None
        return [_record(record) for records in found.values() for record in records]

    def beginning(self, at: TopicPartition) -> int:
        """Return the first offset that is still kept."""
        return self._offset(self._consumer.beginning_offsets, at)

    def end(self, at: TopicPartition) -> int:
        """Return the offset that the next record will get."""
        return self._offset(self._consumer.end_offsets, at)

    def offset_at(self, at: TopicPartition, timestamp_ms: int) -> int | None:
        """Return the first offset sent at or after an instant, None when there is none yet."""
        partition = self._existing(at)
        try:
            found: OffsetAndTimestamp | None = self._consumer.offsets_for_times(
                {partition: max(0, timestamp_ms)}, timeout_ms=self._timeout_ms
            )[partition]
        except KafkaError as error:
            raise broker_error(error, where=f"topic {at.topic}") from None
        # Kafka says None; some that speak its protocol say a time-stamp of -1.
        return None if found is None or found.timestamp < 0 else int(found.offset)

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close(autocommit=False, timeout_ms=int(CLOSE_TIMEOUT_S * 1000))

    def _offset(self, ask: Callable[..., Mapping[KafkaPartition, int]], at: TopicPartition) -> int:
        partition = self._existing(at)
        try:
            return int(ask([partition], timeout_ms=self._timeout_ms)[partition])
        except KafkaError as error:
            raise broker_error(error, where=f"topic {at.topic}") from None

    def _existing(self, at: TopicPartition) -> KafkaPartition:
        count = self.partitions(at.topic)
        if not 0 <= at.partition < count:
            raise BrokerError(
                f"there is no partition {at.partition}",
                where=f"topic {at.topic}",
                hint=f"its partitions are 0 to {count - 1}",
            )
        return KafkaPartition(*at)


def _record(record: ConsumerRecord) -> BrokerRecord:
    return BrokerRecord(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=tuple((name, value or b"") for name, value in record.headers),
        timestamp_ms=record.timestamp,
    )
