"""`bleedwatch run api` over Kafka as an operator runs it: incidents, health, an orderly end."""

import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from detector.streaming.outgoing import finding_message
from exporters.incidents.model import ChangeKind, State
from exporters.store import incidents as incident_rows
from exporters.store.database import open_store
from exporters.store.settings import StoreSettings
from ingest.broker import Message
from ingest.topics import topic_names
from tests.e2e.program import Capture, call, environment
from tests.store.made import found
from tests.streams.process import until
from tests.streams.real import PROGRAM, Cluster, make_cluster


@pytest.fixture
def cluster(kafka: str, topic_prefix: str, tmp_path: Path) -> Cluster:
    return make_cluster(kafka, topic_prefix, tmp_path / "unused")


class Api:
    """The settings of an api, and what is in its store."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/store.db"
        self.log = folder / "log"
        self.database = open_store(StoreSettings(url=self.url))
        stored, anywhere = f"store.url={self.url}", "api.port=0"
        self.flags = [*cluster.arguments[2:], "--set", stored, "--set", anywhere]

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[bytes]"]:
        command = [sys.executable, "-c", PROGRAM, "run", "api", *self.flags]
        with (
            self.log.open("wb") as file,
            subprocess.Popen(command, stderr=file, env=environment()) as process,
        ):
            try:
                yield process
            finally:
                process.kill()

    def changes(self) -> list[ChangeKind]:
        """Return the changes of the one incident; none while there is none."""
        with self.database.read() as connection:
            stored = incident_rows.newest(connection, limit=10)
            assert len(stored) < 2
            return [
                change.kind
                for one in stored
                for change in incident_rows.changes_of(connection, one.id)
            ]

    def page(self, path: str) -> str:
        port = re.search(r"health on port (\d+)", self.log.read_text())
        assert port
        with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}{path}", timeout=5) as answer:
            body: bytes = answer.read()
        return body.decode()


def test_it_keeps_incidents_stops_in_order_and_goes_on_where_it_was(
    cluster: Cluster, tmp_path: Path
) -> None:
    api = Api(cluster, tmp_path)
    topic = topic_names(cluster.settings.topic_prefix).findings
    cluster.send([finding_message(found("f1", 0), topic), Message(topic, b"\xff canary", b"a")])
    with api.running() as process:
        until(lambda: api.changes() == [ChangeKind.OPENED])
        until(lambda: "health on port" in api.log.read_text())
        assert '"ok": true' in api.page("/readyz")
        until(lambda: 'bleedwatch_incidents{state="open"} 1.0' in api.page("/metrics"))
        refused = f'bleedwatch_api_refused_total{{reason="undecodable",topic="{topic}"}} 1.0'
        assert refused in api.page("/metrics")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert "api stopped" in api.log.read_text()
    assert "canary" not in api.log.read_text()
    cluster.send([finding_message(found("f2", 1), topic), finding_message(found("f1", 0), topic)])
    with api.running():
        until(lambda: api.changes() == [ChangeKind.OPENED, ChangeKind.ONGOING])
    with api.database.read() as connection:
        (one,) = incident_rows.newest(connection, limit=2)
    assert (one.state, one.finding_count) == (State.ONGOING, 2)
    api.database.close()


def test_what_is_missing_is_told_before_anything_is_read(
    cluster: Cluster, tmp_path: Path, capsys: Capture
) -> None:
    api = Api(cluster, tmp_path)
    api.database.close()
    flags = api.flags
    code, _, err = call(capsys, "run", "api", *flags, "--set", "kafka.topic_prefix=nobody")
    assert code == 2
    assert "there is no such topic" in err
    nowhere = f"store.url=sqlite:///{tmp_path}/none/store.db"
    code, _, err = call(capsys, "run", "api", *flags, "--set", nowhere)
    assert code == 2
    assert "the store cannot be used" in err
