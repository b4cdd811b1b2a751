"""What can go wrong, one function for each: it runs a round and says what was lost.

Each starts on topics of its own, lets workers find bleeds in records that are being sent, does harm
in the middle, and compares with what an undisturbed run finds. The workers are the program itself;
one scenario has its loop with another handler, which tells the moment to kill it at.
"""

import contextlib
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingest.broker import TopicPartition
from tests.chaos.detection import Bleeds
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

    def bleeds(self, *, doubled: bool = False) -> Bleeds:
        """Return traffic for the program, on topics of its own."""
        return Bleeds(self.server.bootstrap, self.folder, self.seed, doubled=doubled)

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
    """The loop of a worker is killed with findings made and their records not committed."""
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


def killed_detection(stage: Stage) -> Round:
    """The program is killed with findings made and records not committed."""
    bleeds = stage.bleeds()
    with bleeds.arriving():
        with bleeds.program("a") as a:
            bleeds.until_found()
            bleeds.go_on()
            time.sleep(random.Random(stage.seed).random() * 2)
            sent = bleeds.sent
            a.end(signal.SIGKILL)
            pending = bleeds.is_pending(sent)
        with bleeds.program("b"):
            return bleeds.judge("killed detection", counted=pending)


def restarted_broker(stage: Stage) -> Round:
    """The broker goes away for a second, in order or by a power cut, and comes back."""
    bleeds = stage.bleeds()
    with bleeds.arriving(), bleeds.program("a"):
        bleeds.until_found()
        bleeds.go_on()
        (stage.server.kill if stage.seed % 2 else stage.server.stop)()
        time.sleep(1)
        stage.server.start()
        return bleeds.judge("restarted broker", counted=bleeds.is_under_way())


def changing_group(stage: Stage) -> Round:
    """A second worker comes, takes a partition over, and goes in order or by a kill."""
    bleeds = stage.bleeds()
    with bleeds.arriving(), bleeds.program("a"):
        bleeds.until_found()
        with bleeds.program("b") as b:
            b.until_assigned()
            under_way = bleeds.is_under_way()
            bleeds.go_on()
            time.sleep(random.Random(stage.seed).random() * 2)
            if stage.seed % 2:
                b.end(signal.SIGKILL)
            else:
                assert b.end(signal.SIGTERM) == 0
        return bleeds.judge("changing group", counted=under_way)


def paused_worker(stage: Stage) -> Round:
    """A worker is frozen for longer than its session, and goes on as if nothing had been."""
    bleeds = stage.bleeds()
    with bleeds.arriving(), bleeds.program("a") as a:
        bleeds.until_found()
        a.tell(signal.SIGSTOP)
        with bleeds.program("b") as b:
            b.until_assigned()
            under_way = bleeds.is_under_way()
            bleeds.go_on()
            a.tell(signal.SIGCONT)
            return bleeds.judge("paused worker", counted=under_way)


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
    bleeds = stage.bleeds()
    with bleeds.arriving(), bleeds.program("a"):
        bleeds.until_found()
        under_way = bleeds.is_under_way()
        disk.fill()
        bleeds.go_on()
        with contextlib.suppress(AssertionError):
            until(lambda: "No space left" in stage.server.log_file.read_text(), 5)
        full = "No space left" in stage.server.log_file.read_text()
        disk.free()
        stage.server.kill()
        stage.server.start()
        return bleeds.judge("full disk", counted=full and under_way)


def doubled_records(stage: Stage) -> Round:
    """A producer without idempotence sends again what had arrived."""
    bleeds = stage.bleeds(doubled=True)
    with bleeds.arriving(), bleeds.program("a"):
        return bleeds.judge("doubled records", counted=True)


SCENARIOS: dict[str, Scenario] = {
    "killed worker": killed_worker,
    "killed detection": killed_detection,
    "restarted broker": restarted_broker,
    "changing group": changing_group,
    "paused worker": paused_worker,
    "full disk": full_disk,
    "doubled records": doubled_records,
}
