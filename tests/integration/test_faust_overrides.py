"""Each override of Faust's private parts: what it does, and what happens without it.

To be read before another version of faust-streaming is taken.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

import pytest
from faust.types import TP
from faust.types.tuples import ConsumerMessage

from ingest.broker import BrokerRecord, Message, TopicPartition
from ingest.faust_app import FATAL
from ingest.faust_overrides import StreamApp, StreamConsumer
from ingest.ledger import Ledger
from ingest.memory_io import MemoryBroker
from ingest.stream import Outcome
from ingest.turns import Turns
from tests.streams.cluster import Sent, Stream, make_stream, now_ms, pairs
from tests.streams.pairs import PairHandler
from tests.streams.process import until, worker

AT = TopicPartition("input", 0)


@pytest.fixture
def stream(kafka: str, topic_prefix: str) -> Stream:
    return make_stream(kafka, topic_prefix)


def records(count: int) -> list[Sent]:
    start = now_ms() - 60_000
    return [Sent(i % 2, start + i, f"k{i % 4}") for i in range(count)]


def test_the_version_is_the_one_that_was_read() -> None:
    assert version("faust-streaming") == "0.15.3"


# on_partitions_revoked


@pytest.mark.parametrize("without", ["", "on_partitions_revoked"])
def test_what_is_done_is_committed_before_partitions_move(
    stream: Stream, tmp_path: Path, *, without: str
) -> None:
    """Commits on a timer are off, so that only the move commits."""
    sent = records(40)
    stream.send(sent)
    options: dict[str, object] = {"commit_s": 600.0}
    options |= {"without": without} if without else {}
    with worker(stream.arguments(**options), tmp_path / "a.log") as a:
        until(lambda: set(stream.found()) == pairs(sent))
        assert not stream.committed()
        with worker(stream.arguments(), tmp_path / "b.log") as b:
            until(lambda: len(a.partitions()) == len(b.partitions()) == 1)
            if without:
                until(lambda: max(stream.found().values()) == 2)
            else:
                stream.await_committed({0: 20, 1: 20})
                assert set(stream.found().values()) == {1}


# on_partitions_assigned, perform_seek


def test_without_the_placing_a_record_ends_the_process(stream: Stream, tmp_path: Path) -> None:
    stream.send(records(4))
    with worker(stream.arguments(without="perform_seek"), tmp_path / "log") as one:
        assert one.ended() == FATAL
    assert "never placed" in (tmp_path / "log").read_text()
    assert not stream.committed()


def test_without_word_of_an_assignment_nothing_is_taken(stream: Stream, tmp_path: Path) -> None:
    stream.send(records(4))
    with worker(stream.arguments(without="on_partitions_assigned"), tmp_path / "log") as one:
        until(lambda: "Worker ready" in (tmp_path / "log").read_text())
        time.sleep(2)
        assert not one.told
    assert not stream.committed()


# ack, _filter_tps_with_pending_acks, _filter_committable_offsets, _add_gap


async def nothing(messages: Sequence[Message]) -> int:  # noqa: ARG001
    return 0


@asynccontextmanager
async def consumer() -> AsyncIterator[tuple[StreamConsumer, Ledger]]:
    """Give a consumer that is not started, and the ledger that it asks."""
    app = StreamApp("test", broker="kafka://127.0.0.1:1", value_serializer="raw")
    app.loop = asyncio.get_running_loop()
    broker = MemoryBroker({AT.topic: 1})
    ledger = Ledger([AT.topic])
    turns = Turns(
        PairHandler("results"),
        ledger,
        send=nothing,
        reader=broker.reader(),
        beat=lambda: None,
        warmed_up=lambda *_told: None,
    )
    app.assignments = turns
    app.topics.acking_topics.add(AT.topic)
    one = app.consumer
    assert isinstance(one, StreamConsumer)
    try:
        yield one, ledger
    finally:
        turns.close()
        one._thread.thread_loop.close()


def message(offset: int) -> ConsumerMessage:
    return ConsumerMessage(AT.topic, 0, offset, 0.0, 0, {}, b"", b"", None, tp=TP(*AT))


def test_an_acknowledgement_lets_go_and_commits_nothing() -> None:
    async def run() -> None:
        async with consumer() as (one, _):
            first = message(0)
            one.track_message(first)
            assert one.ack(first)
            assert first.acked
            assert not one.ack(first), "once"
            assert not one.unacked
            assert not one._acked
            assert not one._filter_committable_offsets([TP(*AT)])

    asyncio.run(run())


def test_what_is_done_is_committed_and_nothing_else() -> None:
    async def run() -> None:
        async with consumer() as (one, ledger):
            ledger.place(0, {AT: 5}, {AT: 5})
            for offset in (5, 6, 7):
                assert ledger.accept(BrokerRecord(AT.topic, 0, offset, None, b"", (), 0))
            held = ledger.get(0)
            assert held is not None
            one._committed_offset[TP(*AT)] = 5
            considered = list(one._filter_tps_with_pending_acks())
            assert considered == [TP(*AT)]
            assert one._filter_committable_offsets(considered) == {}
            ledger.finish(held, 0, Outcome((), {AT: 7}).done)
            assert one._filter_committable_offsets(considered) == {TP(*AT): 7}
            one._committed_offset[TP(*AT)] = 7
            assert one._filter_committable_offsets(considered) == {}

    asyncio.run(run())


def test_no_list_of_missing_offsets_grows() -> None:
    async def run() -> None:
        async with consumer() as (one, _):
            await one._add_gap(TP(*AT), 1, 1000)
            assert not one._gap

    asyncio.run(run())


# wait_first


def test_a_delivery_makes_no_tasks_while_the_flow_goes() -> None:
    async def deliver() -> int:
        return len(asyncio.all_tasks())

    async def run() -> None:
        async with consumer() as (one, _):
            one.app.flow_control.resume()
            found = await one.wait_first(deliver(), asyncio.Event().wait())
            assert found.results == [1], "the test's own task alone"
            one.stop_flow()
            found = await one.wait_first(deliver(), one.suspend_flow.wait())
            assert max(found.results) > 1, "it can be interrupted"

    asyncio.run(run())
