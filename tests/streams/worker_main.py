"""A worker process with the small handler: what it does is told on stdout as JSON lines.

    python -m tests.streams.worker_main '{"bootstrap": "127.0.0.1:9092", "prefix": "test"}'

`session_s`, `idle_s`, `max_poll_s`, `commit_s` and `security` may be given as well, and with
`without` the name of an override of Faust that is to be left out, with `standby_replicas` a setting
of Faust that decides who assigns partitions.
"""

import asyncio
import json
import logging
import os
import signal
import sys
from typing import Any

from ingest import faust_overrides
from ingest.faust_app import FOREVER_S, FaustWorker, WorkerOptions
from ingest.kafka_credentials import load_credentials
from ingest.kafka_io import KafkaReader
from ingest.kafka_settings import KafkaSettings, SecuritySettings
from tests.streams.pairs import PairHandler


def say(**words: object) -> None:
    """Write one line at once: the loop and the handler's thread both do."""
    os.write(1, f"{json.dumps(words)}\n".encode())


async def work(given: dict[str, Any]) -> None:
    if "without" in given:
        delattr(faust_overrides.StreamConsumer, given["without"])
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    settings = KafkaSettings(
        bootstrap_servers=given["bootstrap"], security=SecuritySettings(**given.get("security", {}))
    )
    prefix = given["prefix"]
    options = WorkerOptions(
        servers=settings.servers,
        topics=[f"{prefix}.{name}" for name in ("sequences", "runtime", "engine-events")],
        group=f"{prefix}-workers",
        credentials=load_credentials(settings.security),
        session_s=given.get("session_s", 6.0),
        idle_s=given.get("idle_s", 0.3),
        commit_s=given.get("commit_s", 1.0),
        max_poll_s=given.get("max_poll_s", FOREVER_S),
        delivery_s=10.0,
    )
    worker = FaustWorker(
        PairHandler(f"{prefix}.findings", say),
        options,
        reader=KafkaReader(settings),
        warmed_up=lambda partition, seconds, records: say(
            event="warm", partition=partition, seconds=round(seconds, 3), records=records
        ),
    )
    if "standby_replicas" in given:
        worker._app.conf.table_standby_replicas = given["standby_replicas"]
    await worker.run(stop)
    say(event="stopped")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(work(json.loads(sys.argv[1])))
