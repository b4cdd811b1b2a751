"""Composition of `run api`: findings and rows of requests in, incidents, alerts and pages out."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from detector.alerting import announcer, heartbeat_announcer, new_sender, wall_ms
from detector.api.board import Board
from detector.api.keeper import Keeper
from detector.api.looking_back import looking_back
from detector.api.recorder import Recorder
from detector.api.serving import serving_api
from detector.config.root import Settings
from exporters.store import heartbeats
from exporters.store.database import Database, open_store
from ingest.broker import Reader
from ingest.kafka_io import KafkaReader
from ingest.topics import topic_names


@dataclass(frozen=True, slots=True)
class Started:
    """What an api has to say once it reads."""

    servers: str
    store: str
    outputs: int
    health_port: int
    api_port: int | None


@dataclass(frozen=True, slots=True)
class Running:
    """An api that reads: turn its keeper, beat its board."""

    keeper: Keeper
    board: Board
    recorder: Recorder
    wake: Callable[[], None]
    """Has the outputs look for what is to be sent."""


def run(
    settings: Settings, *, stopped: Callable[[], bool], on_start: Callable[[Started], None]
) -> None:
    """Keep incidents until `stopped` says so, then end in order.

    Raises StoreError, SettingsError and BrokerError if it cannot begin; later it waits for what is
    away.
    """
    with (
        closing(open_store(settings.store)) as database,
        closing(KafkaReader(settings.kafka)) as reader,
        running(settings, database, reader, pause=time.sleep) as api,
        api.board.serving() as server,
        serving_api(settings, database, api.board, on_change=api.wake) as api_port,
        looking_back(
            settings, database, open_reader=lambda: KafkaReader(settings.kafka)
        ) as look_back,
    ):
        on_start(
            Started(
                servers=settings.kafka.bootstrap_servers,
                store=settings.store.url,
                outputs=len(settings.outputs),
                health_port=server.port,
                api_port=api_port,
            )
        )
        while not stopped():
            api.keeper.turn()
            api.board.beat()
            look_back()


@contextmanager
def running(
    settings: Settings,
    database: Database,
    reader: Reader,
    *,
    pause: Callable[[float], object],
    resumes: bool = True,
) -> Iterator[Running]:
    """Give an api that has its partitions and whose sender runs; both end with the block.

    Without `resumes` the broker is as old as this process.
    """
    recorder = Recorder(
        database,
        reader,
        topics=topic_names(settings.kafka.topic_prefix),
        settings=settings.incidents,
        announce=announcer(settings),
        hear=heartbeat_announcer(settings),
        now_ms=wall_ms,
        resumes=resumes,
    )
    recorder.start()
    if settings.heartbeat.every_ms is None:
        with database.write() as connection:
            heartbeats.forget_all(connection)
    sender = new_sender(settings, database, holder=holder_name())
    keeper = Keeper(
        recorder,
        database,
        settings.store.retention,
        now_ms=wall_ms,
        clock=time.monotonic,
        pause=pause,
        on_change=sender.wake,
    )
    board = Board(keeper, recorder, database, settings.metrics, lanes=sender.states)
    sender.start()
    try:
        yield Running(keeper, board, recorder, sender.wake)
    finally:
        sender.stop()


def holder_name() -> str:
    """Return a name for this process that no other one of the installation has."""
    return f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
