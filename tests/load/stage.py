"""What a load test runs on: a broker of its own with fresh topics, a key, and the settings."""

import contextlib
import os
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from detector.config.load import load_settings
from detector.config.root import Settings
from ingest.kafka_admin import KafkaAdmin
from ingest.key_file import load_secret, new_secret
from ingest.packing import Packer
from ingest.packing_forms import SealedForm
from ingest.schema_records import SequenceRecord
from ingest.sealing import KeyRing
from ingest.topics import TopicNames, topic_names, topic_specs
from tests.kafka.cluster import running
from tests.kafka.fixtures import VARIABLE

URGENT: Final = -10
"""Nice value: about nine times the share of an ordinary process."""


@dataclass(frozen=True)
class Stage:
    """A place to run workers on; `given` are the settings that differ from the defaults."""

    folder: Path
    settings: Settings
    given: Mapping[str, str]
    topics: TopicNames

    def packer(self) -> "Packer[SequenceRecord]":
        """Return a packer of sequences, as a sidecar has one."""
        ring = KeyRing.of(load_secret(self.given["key_file"]))
        return Packer(self.topics.sequences, SealedForm(lambda: ring), self.settings.packing)


@contextlib.contextmanager
def stage(given: Mapping[str, str], *, urgent: bool = False) -> Iterator[Stage]:
    """Prepare everything, on the cluster that BLEEDWATCH_TEST_KAFKA names or on a node made now.

    `urgent` puts us and the node before everybody else on the machine, where we may.
    """
    with contextlib.ExitStack() as stack:
        servers = os.environ.get(VARIABLE)
        if servers is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bleedwatch-kafka-"))
            server = stack.enter_context(running(Path(folder)))
            servers = server.bootstrap
            if urgent:
                put_first(server.pid)
        if urgent:
            put_first(os.getpid())
        yield stack.enter_context(prepared(servers, given))


@contextlib.contextmanager
def prepared(servers: str, given: Mapping[str, str]) -> Iterator[Stage]:
    """Prepare topics, a key and settings on a cluster."""
    with tempfile.TemporaryDirectory(prefix="bleedwatch-load-") as scratch:
        folder = Path(scratch)
        new_secret(folder / "key")
        everything = {
            "kafka.bootstrap_servers": servers,
            "kafka.topic_prefix": f"load-{uuid.uuid4().hex[:8]}",
            "key_file": str(folder / "key"),
            **given,
        }
        assignments = [f"{name}={value}" for name, value in everything.items()]
        settings = load_settings(None, assignments=assignments).settings
        with KafkaAdmin(settings.kafka) as admin:
            admin.create(topic_specs(settings.kafka))
        topics = topic_names(settings.kafka.topic_prefix)
        yield Stage(folder, settings, everything, topics)


def put_first(pid: int) -> None:
    """Give the session of a process more of the machine; Linux shares it out by sessions."""
    try:
        Path(f"/proc/{pid}/autogroup").write_text(str(URGENT))
    except OSError as error:
        stamp(f"no priority for process {pid}: {error.strerror}")


def stamp(text: str) -> None:
    """Print a line with the time of day: load tests take minutes."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)
