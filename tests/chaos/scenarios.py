"""What can go wrong, one function for each: it runs a round and says what was lost.

Each starts on topics of its own, lets workers find pairs in records that are being sent, does harm
in the middle, and compares with what an undisturbed run finds.
"""

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingest.broker import TopicPartition
from tests.chaos import detection
from tests.chaos.small_disk import SmallDisk
from tests.chaos.traffic import Round, Sender, judge, made_up
from tests.kafka.cluster import KafkaServer
from tests.streams.cluster import Sent, Stream, make_stream
from tests.streams.process import WorkerProcess, until, worker

SESSION_S = 3.0
PARTITIONS = 2


@dataclass
class Stage:
    """Where a round takes place."""

    server: KafkaServer
    folder: Path
    seed: int

    def stream(self, name: str) -> Stream:
        return make_stream(
            self.server.bootstrap, f"{name}-{self.seed}-{time.time_ns()}", PARTITIONS
        )

    @contextlib.contextmanager
    def worker(self, stream: Stream, name: str) -> Iterator[WorkerProcess]:
        with worker(stream.arguments(session_s=SESSION_S), self.folder / f"{name}.log") as one:
            yield one

    @contextlib.contextmanager
    def sender(
        self, stream: Stream, records: Sequence[Sent], reader: WorkerProcess
    ) -> Iterator[Sender]:
        """Send records once the worker reads."""
        reader.wait_event("assign", PARTITIONS)
        with Sender(stream, records) as one:
            yield one


Scenario = Callable[[Stage], Round]


def killed_worker(stage: Stage) -> Round:
    """A worker is killed with findings made and their records not committed."""
    stream, records = stage.stream("kill"), made_up(stage.seed, PARTITIONS)
    chance = random.Random(stage.seed)
    with stage.worker(stream, "a") as a, stage.sender(stream, records, a) as sender:
        sender.wait_for(0.2 + chance.random() * 0.6)
        a.tells("pending", 10, before=len(a.told))
        time.sleep(chance.random() * 0.02)
        a.kill()
        committed = stream.committed()
        topic = stream.inputs[0]
        pending = [
            told
            for told in a.told
            if told["event"] == "pending"
            and told["upto"] > committed.get(TopicPartition(topic, told["partition"]), 0)
        ]
        healed = time.monotonic()
        with stage.worker(stream, "b"):
            return judge("killed worker", stream, records, healed, counted=bool(pending))


def restarted_broker(stage: Stage) -> Round:
    """The broker goes away for a second, in order or by a power cut, and comes back."""
    stream, records = stage.stream("broker"), made_up(stage.seed, PARTITIONS)
    with stage.worker(stream, "a") as a, stage.sender(stream, records, a) as sender:
        sender.wait_for(0.3)
        (stage.server.kill if stage.seed % 2 else stage.server.stop)()
        time.sleep(1)
        stage.server.start()
        return judge("restarted broker", stream, records, time.monotonic())


def changing_group(stage: Stage) -> Round:
    """A second worker comes and goes, in order or by a kill."""
    stream, records = stage.stream("group"), made_up(stage.seed, PARTITIONS)
    with stage.worker(stream, "a") as a, stage.sender(stream, records, a) as sender:
        sender.wait_for(0.1)
        with stage.worker(stream, "b") as b:
            b.wait_event("assign")
            worked = b.tells("take", 10)
            if stage.seed % 2:
                b.kill()
            else:
                assert b.stop() == 0
        return judge("changing group", stream, records, time.monotonic(), counted=worked)


def paused_worker(stage: Stage) -> Round:
    """A worker is frozen for longer than its session, and goes on as if nothing had been."""
    stream, records = stage.stream("pause"), made_up(stage.seed, PARTITIONS)
    with stage.worker(stream, "a") as a, stage.sender(stream, records, a):
        a.wait_event("pending")
        a.freeze()
        with stage.worker(stream, "b") as b:
            b.wait_event("assign", PARTITIONS)
            a.thaw()
            return judge("paused worker", stream, records, time.monotonic())


def full_disk(stage: Stage) -> Round:
    """The disk of the broker is full: it stops; then there is room again, and it is started."""
    folder = stage.folder / f"full-{stage.seed}"
    with SmallDisk(stage.folder) as disk:
        server = KafkaServer(folder, log_dir=disk.path / "data", more=disk.properties)
        server.start()
        try:
            return _on_a_full_disk(Stage(server, stage.folder, stage.seed), disk)
        finally:
            with contextlib.suppress(AssertionError):
                server.kill()


def _on_a_full_disk(stage: Stage, disk: SmallDisk) -> Round:
    stream, records = stage.stream("disk"), made_up(stage.seed, PARTITIONS)
    with stage.worker(stream, "a") as a, stage.sender(stream, records, a) as sender:
        sender.wait_for(0.3)
        disk.fill()
        with contextlib.suppress(AssertionError):
            until(lambda: "No space left" in stage.server.log_file.read_text(), 5)
        full = "No space left" in stage.server.log_file.read_text()
        disk.free()
        stage.server.kill()
        stage.server.start()
        return judge("full disk", stream, records, time.monotonic(), counted=full)


def doubled_records(stage: Stage) -> Round:
    """A producer without idempotence sends again what had arrived."""
    stream, records = stage.stream("double"), made_up(stage.seed, PARTITIONS)
    chance = random.Random(stage.seed)
    sent = [one for one in records for _ in range(chance.choice((1, 1, 2, 3)))]
    with stage.worker(stream, "a") as a, stage.sender(stream, sent, a):
        return judge("doubled records", stream, records, time.monotonic())


def killed_detection(stage: Stage) -> Round:
    """The program itself is killed while bleeds arrive."""
    return detection.killed_detection(stage.server.bootstrap, stage.folder, stage.seed)


SCENARIOS: dict[str, Scenario] = {
    "killed worker": killed_worker,
    "restarted broker": restarted_broker,
    "changing group": changing_group,
    "paused worker": paused_worker,
    "full disk": full_disk,
    "doubled records": doubled_records,
    "killed detection": killed_detection,
}
