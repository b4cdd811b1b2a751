"""`bleedwatch run sidecar` as a process of its own, over a Kafka cluster, and what it has sent."""

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from detector.config.load import load_settings
from detector.config.root import Settings
from ingest.broker import BrokerRecord, TopicPartition
from ingest.kafka_io import KafkaReader
from ingest.key_file import load_secret, new_secret
from ingest.schema_records import SequenceRecord
from ingest.topics import topic_names
from tests.e2e.program import PROGRAM, environment
from tests.e2e.traffic import write_config
from tests.streams.real import make_cluster
from tests.unit.sent_sequences import Told, opened, replayed, told

START_S: Final = 60.0
"""A start takes a second, on a machine that may be busy."""

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """What a process has used so far, and what it holds."""

    cpu_s: float
    resident_bytes: int


class Site:
    """A log, a checkpoint, a key and the topics of one installation; sidecars come and go."""

    def __init__(
        self, folder: Path, bootstrap: str, prefix: str, *, log_format: str, **more: Any
    ) -> None:
        self.folder = folder
        self.log = folder / "logs" / "server.log"
        self.log.parent.mkdir()
        self.key = folder / "key"
        new_secret(self.key)
        make_cluster(bootstrap, prefix, self.key)
        self.config = write_config(
            folder / "config.json",
            kafka={"bootstrap_servers": bootstrap, "topic_prefix": prefix},
            sidecar={
                "checkpoint_file": str(folder / "checkpoint"),
                "checkpoint_ms": 200,
                "rotate_wait_ms": 300,
                "health_file": str(folder / "health.json"),
                "format": log_format,
                "engine": "engine-0",
            },
            metrics={"port": 0},
            **more,
        )
        self.settings: Settings = load_settings(
            str(self.config), environment={}, key_file=str(self.key)
        ).settings
        self.topics = topic_names(prefix)

    @property
    def arguments(self) -> list[str]:
        """The command line behind `bleedwatch`."""
        return [
            *("run", "sidecar", str(self.log)),
            *("--config", str(self.config), "--key-file", str(self.key)),
        ]

    def messages(self, topic: str) -> Iterator[BrokerRecord]:
        """Yield what lies in a topic."""
        reader = KafkaReader(self.settings.kafka)
        try:
            parts = [TopicPartition(topic, at) for at in range(reader.partitions(topic))]
            ends = {at: end for at in parts if (end := reader.end(at)) > reader.beginning(at)}
            reader.assign(dict.fromkeys(ends, 0))
            while ends:
                for record in reader.poll(1.0):
                    yield record
                    at = TopicPartition(record.topic, record.partition)
                    if at in ends and record.offset + 1 >= ends[at]:
                        del ends[at]
        finally:
            reader.close()

    def sequences(self) -> Iterator[SequenceRecord]:
        """Yield the sequences on the broker."""
        return opened(self.messages(self.topics.sequences), load_secret(self.key))

    def told(self) -> Counter[Told]:
        """Return what the sequences say, with how often."""
        return Counter(map(told, self.sequences()))

    def expected(self, whole: Path) -> Counter[Told]:
        """Return what a replay of a whole log says, with how often."""
        return replayed(whole, self.settings, load_secret(self.key))


class SidecarProcess:
    """One `bleedwatch run sidecar`; its stderr is appended to `log`."""

    def __init__(self, site: Site, log: Path) -> None:
        self._log = log
        self._seen = log.stat().st_size if log.exists() else 0
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [*PROGRAM, *site.arguments],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env=environment(),
            )

    def await_start(self) -> None:
        """Wait until it reads; raises AssertionError with what it said if it does not."""
        until = time.monotonic() + START_S
        while b"sidecar sends" not in (said := self._log.read_bytes()[self._seen :]):
            assert self.process.poll() is None, said.decode()
            assert time.monotonic() < until, said.decode()
            time.sleep(0.02)

    def usage(self) -> Usage:
        """Return what it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return Usage((int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * _PAGE)

    @contextmanager
    def killed_at_last(self) -> Iterator[None]:
        """Kill it behind a `with` block, whatever happens in there."""
        try:
            yield
        finally:
            self.kill()

    def kill(self) -> None:
        """End it without a chance to do anything."""
        self.process.kill()
        self.process.wait()

    def stop(self, timeout_s: float = 40.0) -> int:
        """Tell it to stop and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout_s)
        finally:
            self.kill()
