"""Composition of `run worker`: one process of a group that shares the work over Kafka."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from detector.config.root import Settings
from detector.errors import SettingsError
from detector.index.selection import sampling_of
from detector.index.shared_memory import SharedMemory
from detector.kernels.siphash import tagger
from detector.match.digests import Digester
from detector.sketch.tag_keys import TagKeys
from detector.sketch.token_table import Keys, TokenTable
from detector.streaming.commonness_feed import CommonnessFeed
from detector.streaming.compiling import compile_kernels
from detector.streaming.compose import new_handler
from detector.streaming.exchange import Exchange
from detector.streaming.global_tier import GlobalTier
from detector.streaming.sharing import SharingHandler
from detector.streaming.watched import Watched
from detector.streaming.worker_keys import WorkerKeys
from ingest.broker import Reader
from ingest.faust_app import FaustWorker, WorkerOptions
from ingest.kafka_credentials import load_credentials
from ingest.kafka_io import KafkaReader
from ingest.stream import Handler
from ingest.topics import topic_names

_log = logging.getLogger(__name__)

COMMON_S = 60.0
"""How long a start waits until what the others have told is read; a day of it takes seconds."""

WRITER_BYTES = 8
"""Names this process among those that own a range of shingles: chance collides once in 10^9."""


@dataclass(frozen=True, slots=True)
class Started:
    """What a worker has to say once it serves."""

    group: str
    servers: str
    partitions: int
    health_port: int


class _Readers(NamedTuple):
    """A reader for each use, because each has positions of its own."""

    inputs: Reader
    common: Reader
    bands: Reader | None
    """Only with the global tier."""


def run(settings: Settings, *, on_start: Callable[[Started], None]) -> None:
    """Work until SIGTERM, SIGINT or SIGHUP, then commit, leave the group and return.

    Raises SettingsError without a key file, KeyFileError, and BrokerError if the cluster is away or
    a topic is missing. A fault later ends the process with code 70, uncommitted.
    """
    if settings.key_file is None:
        raise SettingsError(
            "a worker needs the secret under which the senders seal",
            where="key_file",
            hint="bleedwatch key new PATH makes one; give it to senders and workers",
        )
    keys = WorkerKeys(settings.key_file, settings.sealing)
    compile_kernels(settings, TagKeys(keys.current.tag_key))
    with _readers(settings) as readers:
        _work(settings, keys, readers, on_start)


def group_name(settings: Settings) -> str:
    """Return the consumer group of the workers; the prefix keeps two installations apart."""
    return f"{settings.kafka.topic_prefix}.workers"


def _work(
    settings: Settings,
    keys: WorkerKeys,
    readers: _Readers,
    on_start: Callable[[Started], None],
) -> None:
    topics = topic_names(settings.kafka.topic_prefix)
    partitions = readers.inputs.partitions(topics.sequences)
    memory, exchange, feed = _shared(settings, keys.current, readers.common, partitions)
    tags = TagKeys(keys.current.tag_key)
    tier = GlobalTier(settings, tags, ring=keys.ring, ranges=partitions)
    sketches = None if readers.bands is None else tier.sketches
    handler = new_handler(
        settings,
        ring=keys.ring,
        table=TokenTable(keys.current.hash_key, key_id=keys.current.key_id),
        digester=Digester(keys.current.tag_key, key_id=keys.current.key_id, tagger=tagger),
        memory=memory,
        sketches=sketches,
        partitions=partitions,
    )
    outer: Handler = SharingHandler(handler, exchange, feed)
    if readers.bands is not None:
        outer = tier.around(outer, handler, readers.bands)
    watched = Watched(
        settings,
        handler,
        outer=outer,
        exchange=exchange,
        bands=None if readers.bands is None else tier.exchange,
        key_file_unreadable=keys.unreadable,
    )
    worker = FaustWorker(
        watched.handler,
        _options(settings, topics.inputs),
        reader=readers.inputs,
        beat=watched.beat,
        warmed_up=watched.warmed_up,
    )
    with watched.serving(worker) as server:
        on_start(_started(settings, partitions=partitions, health_port=server.port))
        asyncio.run(_until_stopped(worker))


def _started(settings: Settings, *, partitions: int, health_port: int) -> Started:
    return Started(
        group=group_name(settings),
        servers=settings.kafka.bootstrap_servers,
        partitions=partitions,
        health_port=health_port,
    )


def _shared(
    settings: Settings, keys: Keys, reader: Reader, ranges: int
) -> tuple[SharedMemory, Exchange, CommonnessFeed]:
    """Return what the workers share, with all that the others have told so far."""
    commonness = settings.detection.commonness
    memory = SharedMemory(commonness, TagKeys(keys.tag_key))
    exchange = Exchange(
        memory,
        commonness,
        key_id=keys.key_id,
        sampling=sampling_of(settings.detection.index),
        ranges=ranges,
        prefix=settings.kafka.topic_prefix,
        writer=os.urandom(WRITER_BYTES),
    )
    feed = CommonnessFeed(reader, exchange)
    if not feed.start(timeout_s=COMMON_S):
        _log.warning("not all of what is common was read within %g s: going on", COMMON_S)
    return memory, exchange, feed


async def _until_stopped(worker: FaustWorker) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:  # nohup ignores SIGHUP, and that stays
            continue
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await worker.run(stop)


def _options(settings: Settings, inputs: tuple[str, ...]) -> WorkerOptions:
    kafka = settings.kafka
    return WorkerOptions(
        servers=kafka.servers,
        topics=inputs,
        group=group_name(settings),
        credentials=load_credentials(kafka.security),
        session_s=kafka.session_timeout_ms / 1000,
        idle_s=settings.stream.idle_ms / 1000,
        max_message_bytes=kafka.max_message_bytes,
        delivery_s=kafka.delivery_timeout_ms / 1000,
        batch_records=settings.stream.batch_records,
    )


@contextmanager
def _readers(settings: Settings) -> Iterator[_Readers]:
    with ExitStack() as opened:

        def reader() -> Reader:
            return opened.enter_context(closing(KafkaReader(settings.kafka)))

        bands = reader() if settings.stream.global_tier else None
        yield _Readers(reader(), reader(), bands)
