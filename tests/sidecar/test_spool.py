"""The spool as an operator meets it: killed, on a disk that is full, and with Kafka away."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from detector.config.load import load_settings
from detector.errors import BrokerError
from detector.outlets import new_outlet
from ingest.spooled_outlet import SpooledOutlet
from tests.chaos.small_disk import SmallDisk
from tests.content.tree import ROOT
from tests.kafka.cluster import KafkaServer
from tests.sidecar.outage import outage, site_with_spool
from tests.sidecar.process import SidecarProcess, Site
from tests.sidecar.writer import LogWriter
from tests.streams.process import until
from tests.unit.spools import filled, message, opened, read

KILLS = 6


def test_what_was_safe_is_there_after_a_kill(tmp_path: Path) -> None:
    """Killed as it writes; each process begins where the one before said that it was safe."""
    chance, safe = Random(5), -1
    for _ in range(KILLS):
        command = [sys.executable, "-m", "tests.sidecar.spool_main", str(tmp_path), str(safe + 1)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(chance.uniform(0, 0.15))
        process.kill()
        told = (first + process.stdout.read()).decode().split("\n")[:-1]
        process.wait()
        process.stdout.close()
        with closing(opened(tmp_path, max_bytes=2**28)) as spool:
            numbers = read(spool)
        assert numbers == list(range(len(numbers)))
        assert int(told[-1]) in numbers
        safe = max(numbers)
    assert safe > KILLS


def test_a_full_disk_refuses_until_there_is_room(tmp_path: Path) -> None:
    with SmallDisk(tmp_path) as disk:
        folder = disk.path / "spool"
        with closing(filled(folder, range(100), sync=True, max_bytes=2**24)) as spool:
            disk.fill()
            number = 100
            with pytest.raises(BrokerError, match="no space left"):  # noqa: PT012 - it may fit
                for number in range(100, 1_000):
                    spool.append(message(number))
            spool.sync()
            assert spool.counts.refused == 1
            disk.free()
            spool.append(message(number))
            spool.sync()
            assert read(spool) == list(range(number + 1))
        with closing(opened(folder, max_bytes=2**24)) as spool:
            assert read(spool) == list(range(number + 1))
            assert spool.counts.cut_bytes == 0


def test_a_full_disk_gives_up_old_segments_first(tmp_path: Path) -> None:
    with (
        SmallDisk(tmp_path) as disk,
        closing(filled(disk.path / "spool", range(1_000), max_bytes=2**20)) as spool,
    ):
        disk.fill()
        for number in range(1_000, 2_000):
            spool.append(message(number))
        spool.sync()
        left = read(spool)
        assert left == list(range(left[0], 2_000))
        assert spool.counts.dropped == {"sequences": left[0]}
        assert spool.counts.refused == 0


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[KafkaServer]:
    """Give a node that a test may stop and start."""
    server = KafkaServer(tmp_path / "kafka")
    server.start()
    try:
        yield server
    finally:
        server.kill()


def test_kafka_may_go_away_and_come_back(own_kafka: KafkaServer, tmp_path: Path) -> None:
    """Away under load, over a kill and a start of the sidecar: everything arrives."""
    site = Site(
        tmp_path,
        own_kafka.bootstrap,
        "spool",
        log_format="sglang",
        spool={"folder": str(tmp_path / "spool"), "after_ms": 300},
    )
    said = tmp_path / "stderr"
    sidecar = SidecarProcess(site, said)
    with LogWriter(site.log, log_format="sglang", seed=3, follower=sidecar) as writer:
        try:
            until(lambda: _health(site).get("tokens", 0) > 0)
            own_kafka.kill()
            segment = tmp_path / "spool" / "0000000000000001.spool"
            until(lambda: segment.exists() and segment.stat().st_size > 100_000)
            sidecar.kill()
            sidecar = SidecarProcess(site, said)  # though there is no broker
            sidecar.await_start()
            time.sleep(1.0)
            own_kafka.start()
            writer.end()
            until(lambda: not list((tmp_path / "spool").glob("*.spool")))
            assert sidecar.stop() == 0
        finally:
            sidecar.kill()
    expected, told = site.expected(writer.whole), site.told()
    assert set(told) == set(expected)


def test_an_outage_under_load_costs_nothing(own_kafka: KafkaServer, tmp_path: Path) -> None:
    """As `make sidecar-outage` does it for minutes: what waited on disk arrives, once sent."""
    site = site_with_spool(tmp_path, own_kafka, log_format="sglang")
    seen = outage(site, own_kafka, seconds=4.0, seed=5, log_format="sglang")
    assert seen.is_whole, seen
    assert seen.expected > 100
    assert seen.replayed == seen.spooled


def test_without_room_the_loss_is_exact(own_kafka: KafkaServer, tmp_path: Path) -> None:
    """What the counter says was dropped is what Kafka does not have."""
    site = Site(
        tmp_path,
        own_kafka.bootstrap,
        "room",
        log_format="sglang",
        spool={"folder": str(tmp_path / "spool"), "after_ms": 100, "max_bytes": 2**17},
    )
    settings = load_settings(str(site.config), environment={}, key_file=str(site.key)).settings
    own_kafka.kill()
    outlet = new_outlet(settings)
    assert isinstance(outlet, SpooledOutlet)
    for number in range(1_000):
        outlet.send(message(number, topic=site.topics.sequences))
    outlet.flush(60)
    dropped = outlet.counts.dropped[site.topics.sequences]
    own_kafka.start()
    until(lambda: outlet.counts.messages == 0)
    assert outlet.counts.dropped[site.topics.sequences] == dropped
    outlet.close()
    arrived = {int.from_bytes((one.value or b"")[:8]) for one in site.messages(site.topics[0])}
    assert 0 < dropped < 1_000
    assert arrived == set(range(dropped, 1_000))


def test_a_publisher_that_has_given_up_is_replaced(own_kafka: KafkaServer, tmp_path: Path) -> None:
    """Away for longer than the client tries: its failures cost nothing but repeats."""
    site = Site(
        tmp_path,
        own_kafka.bootstrap,
        "gone",
        log_format="sglang",
        spool={"folder": str(tmp_path / "spool"), "after_ms": 300},
    )
    patience = {"delivery_timeout_ms": 2_000, "connect_timeout_ms": 2_000}
    kafka = site.settings.kafka.model_copy(update=patience)
    outlet = new_outlet(site.settings.model_copy(update={"kafka": kafka}))
    assert isinstance(outlet, SpooledOutlet)
    topic = site.topics.sequences
    for number in range(20):
        outlet.send(message(number, topic=topic))
    outlet.flush(60)
    until(lambda: outlet.counts.messages == 0 and outlet.problem is None)
    own_kafka.kill()
    for number in range(20, 300):
        outlet.send(message(number, topic=topic))
    outlet.flush(60)
    until(lambda: "nothing listens" in str(outlet.problem))
    own_kafka.start()
    until(lambda: outlet.counts.messages == 0)
    outlet.send(message(300, topic=topic))
    outlet.close()
    arrived = [int.from_bytes((one.value or b"")[:8]) for one in site.messages(topic)]
    assert set(arrived) == set(range(301))


def _health(site: Site) -> dict[str, int]:
    path = site.folder / "health.json"
    return json.loads(path.read_bytes()) if path.exists() else {}
