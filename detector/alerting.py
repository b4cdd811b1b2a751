"""Composition of alerts: outputs and the sender from settings, and what announces incidents."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial

from detector.config.root import Settings
from detector.errors import BrokerError, UsageError
from exporters.outputs.build import build
from exporters.outputs.contract import Output
from exporters.outputs.kafka import PARTS, Headers, KafkaOutput
from exporters.outputs.notification import Kind, Notification
from exporters.outputs.settings import KafkaOutputSettings
from exporters.sending.announce import (
    announce,
    announce_gone,
    announce_heartbeats,
    monitor_notification,
)
from exporters.sending.lane import Lane
from exporters.sending.leadership import Leadership
from exporters.sending.sender import Sender
from exporters.store import journal
from exporters.store.database import Database
from exporters.store.heartbeats import Hear
from exporters.store.journal import Attempt
from exporters.store.recording import Announce
from ingest.broker import Message
from ingest.connection import Connection
from ingest.kafka_io import KafkaPublisher
from ingest.kafka_settings import KafkaSettings


def wall_ms() -> int:
    """Return Unix milliseconds."""
    return time.time_ns() // 1_000_000


def announcer(settings: Settings) -> Announce:
    """Return what turns changes of incidents into rows of the outbox."""
    return partial(announce, outputs=settings.outputs, external_url=settings.sending.external_url)


def heartbeat_announcer(settings: Settings, *, now_ms: Callable[[], int] = wall_ms) -> Hear:
    """Return what tells the outputs for heartbeats that one has arrived."""
    return lambda connection, beats: announce_heartbeats(
        connection, beats, outputs=settings.outputs, now_ms=now_ms()
    )


def new_outputs(settings: Settings) -> list[Output]:
    """Make the outputs, in the order of the settings.

    Raises SettingsError for files that cannot be used.
    """

    def kafka(output: KafkaOutputSettings) -> Output:
        return KafkaOutput(output, _KafkaTopic(settings.kafka, output))

    return [build(output, kafka=kafka) for output in settings.outputs]


def chosen(settings: Settings, names: Sequence[str]) -> Settings:
    """Return the settings with these outputs only, all if none is named.

    Raises UsageError for a name that none has, and if there are no outputs.
    """
    known = [output.name for output in settings.outputs]
    if not known:
        raise UsageError("no outputs are set", where="outputs", hint="see docs/outputs.md")
    for name in names:
        if name not in known:
            hint = f"there are {', '.join(known)}"
            raise UsageError(f"there is no output {name}", where="outputs", hint=hint)
    wanted = tuple(output for output in settings.outputs if not names or output.name in names)
    return settings.model_copy(update={"outputs": wanted})


def trial(output: str, *, at_ms: int) -> Notification:
    """Return what a test alert sends to an output."""
    return monitor_notification(
        Kind.TEST,
        output,
        title="This is a test alert of bleedwatch: nothing has happened.",
        reason="somebody asked for a test alert",
        at_ms=at_ms,
    )


def send_test(settings: Settings, database: Database) -> list[Attempt]:
    """Send a test alert to every output at once, and note in the journal how that went.

    Raises SettingsError for files of outputs that cannot be used, StoreError for the journal.
    """
    attempts = []
    for output in new_outputs(settings):
        at_ms = wall_ms()
        told = trial(output.name, at_ms=at_ms)
        try:
            outcome = output.send(told, at_ms=at_ms)
        finally:
            output.close()
        attempt = journal.attempt(
            told, output.name, outcome, at_ms=at_ms, duration_ms=wall_ms() - at_ms
        )
        with database.write() as connection:
            journal.record(connection, attempt)
        attempts.append(attempt)
    return attempts


def new_sender(
    settings: Settings, database: Database, *, holder: str, now_ms: Callable[[], int] = wall_ms
) -> Sender:
    """Make the sender of one process; `holder` is its name among those that use the store."""
    lanes = [
        Lane(
            output,
            database,
            per_minute=of.most_per_minute,
            give_up_ms=settings.sending.give_up_ms,
            now_ms=now_ms,
            chance=random.random,
            on_gone=lambda connection, name, at_ms: announce_gone(
                connection, name, outputs=settings.outputs, at_ms=at_ms
            ),
        )
        for of, output in zip(settings.outputs, new_outputs(settings), strict=True)
    ]
    return Sender(lanes, Leadership(database, holder), now_ms=now_ms)


class _KafkaTopic:
    """A topic of the cluster in `kafka`; connected when something is sent, again when it was lost.

    Waits no longer than the output's time-out in all.
    """

    def __init__(self, kafka: KafkaSettings, output: KafkaOutputSettings) -> None:
        part_ms = output.timeout_ms // PARTS
        brief = kafka.model_copy(
            update={"connect_timeout_ms": part_ms, "delivery_timeout_ms": output.timeout_ms}
        )
        self._topic = output.topic
        self._part_s = part_ms / 1000
        self._changed = threading.Event()
        self._connection = Connection(lambda: KafkaPublisher(brief), on_change=self._changed.set)

    def publish(self, key: bytes, value: bytes, headers: Headers) -> "Future[int]":
        """Send; the future raises BrokerError, also when there is no connection."""
        publisher = self._connection.publisher()
        if publisher is None:
            self._changed.wait(self._part_s)
            publisher = self._connection.publisher()
        self._changed.clear()
        if publisher is None:
            refused: Future[int] = Future()
            refused.set_exception(
                BrokerError("no connection", where=f"topic {self._topic}", hint="tried again")
            )
            return refused
        sent = publisher.send(Message(self._topic, value, key=key, headers=headers))
        sent.add_done_callback(self._heard)
        return sent

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _heard(self, sent: "Future[int]") -> None:
        error = sent.exception()
        if isinstance(error, BrokerError):
            self._connection.lost(error)
        elif error is None:
            self._connection.works()
