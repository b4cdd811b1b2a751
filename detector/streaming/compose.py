"""Builds the handler of a process from the settings."""

import time

from detector.config.root import Settings
from detector.index.memory import Memory
from detector.match.digests import Digester
from detector.match.response_sketches import ResponseSketches
from detector.sketch.token_table import TokenTable
from detector.streaming.handler import StreamHandler
from detector.streaming.intake import RingNow
from ingest.allow_list import load_allow_lists
from ingest.stream import Clock
from ingest.topics import topic_names


def new_handler(
    settings: Settings,
    *,
    ring: RingNow,
    table: TokenTable,
    memory: Memory | None = None,
    sketches: ResponseSketches | None = None,
    digester: Digester | None = None,
    partitions: int | None = None,
    clock: Clock = time.monotonic,
) -> StreamHandler:
    """Return a handler for all partitions of the topics that the settings name.

    `table` hashes the allow-lists and `digester` knows the hashed ones, so both are of the current
    secret. `partitions` is what the topics really have, where that is not what the settings say.
    """
    detection = settings.detection
    return StreamHandler(
        detection,
        topics=topic_names(settings.kafka.topic_prefix),
        ring=ring,
        partitions=settings.kafka.partitions if partitions is None else partitions,
        stream=settings.stream,
        dead_letters=settings.dead_letters,
        packing=settings.packing,
        memory=memory,
        sketches=sketches,
        allowed=load_allow_lists(detection.filter.allow_lists, table, digester),
        digester=digester,
        engines=settings.runtime,
        clock=clock,
    )
