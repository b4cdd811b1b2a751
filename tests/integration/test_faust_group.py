"""How workers share partitions: all inputs of one together, and a worker without any stays."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient

from ingest.broker import TopicPartition
from ingest.faust_app import FATAL
from tests.streams.cluster import INPUTS, Sent, Stream, make_stream, now_ms
from tests.streams.process import WorkerProcess, until, worker


def members(stream: Stream) -> list[dict[str, Any]]:
    """Return what the broker says of each member of the group."""
    admin = KafkaAdminClient(bootstrap_servers=stream.settings.servers)
    try:
        found: list[dict[str, Any]] = admin.describe_groups([stream.group])[stream.group]["members"]
        return found
    finally:
        admin.close()


def shares(stream: Stream) -> list[set[TopicPartition]]:
    """Return the inputs that each member reads."""
    return [
        {
            TopicPartition(topic["topic"], partition)
            for topic in member["member_assignment"]["assigned_partitions"]
            for partition in topic["partitions"]
        }
        for member in members(stream)
    ]


def held(workers: list[WorkerProcess]) -> list[int]:
    return sorted(partition for one in workers for partition in one.partitions())


def test_three_workers_read_all_inputs_of_a_partition_together(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    stream = make_stream(kafka, topic_prefix, partitions=6)
    with ExitStack() as stack:
        workers = [
            stack.enter_context(worker(stream.arguments(), tmp_path / f"{n}.log")) for n in range(3)
        ]
        until(lambda: [len(one.partitions()) for one in workers] == [2, 2, 2])
        assert held(workers) == list(range(6))
        told = shares(stream)
        assert sorted(len(share) for share in told) == [6, 6, 6]
        for share in told:
            both = {at.partition for at in share}
            assert share == {TopicPartition(topic, p) for topic in stream.inputs for p in both}
        moment = now_ms()
        for after, topic in enumerate(INPUTS):
            stream.send([Sent(p, moment + after, "k") for p in range(6)], topic)
        until(lambda: len(stream.found()) == 18)
        assert all(one.stop() == 0 for one in workers)


def test_without_fausts_assignor_inputs_part_and_a_worker_ends(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    stream = make_stream(kafka, topic_prefix, partitions=4)
    with ExitStack() as stack:
        workers = [
            stack.enter_context(worker(stream.arguments(standby_replicas=0), tmp_path / f"{n}.log"))
            for n in range(3)
        ]
        until(lambda: any(one.process.poll() == FATAL for one in workers))
    logs = "".join((tmp_path / f"{n}.log").read_text() for n in range(3))
    assert "only some inputs of a partition were assigned" in logs


@pytest.mark.parametrize(("max_poll_s", "takes_over"), [(None, True), (3.0, False)])
def test_a_worker_without_partitions_stays_in_the_group(
    kafka: str, topic_prefix: str, tmp_path: Path, *, max_poll_s: float | None, takes_over: bool
) -> None:
    """With a shorter poll interval than its leisure it leaves, unseen, and is of no use."""
    stream = make_stream(kafka, topic_prefix, partitions=1)
    options: dict[str, object] = {} if max_poll_s is None else {"max_poll_s": max_poll_s}
    with (
        worker(stream.arguments(session_s=3, **options), tmp_path / "a.log") as a,
        worker(stream.arguments(session_s=3, **options), tmp_path / "b.log") as b,
    ):
        until(lambda: len(held([a, b])) == 1 and len(members(stream)) == 2)
        busy, idle = (a, b) if a.partitions() else (b, a)
        time.sleep(5)  # longer than the poll interval
        assert idle.process.poll() is None
        busy.kill()
        if takes_over:
            until(lambda: idle.partitions() == {0})
        else:
            time.sleep(7)  # twice the session: somebody else would have taken over
            assert not idle.partitions()
