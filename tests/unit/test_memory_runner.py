"""The plain runner: what is committed is acknowledged, and silence ends the waiting."""

import pytest

from detector.errors import BrokerError
from ingest.broker import TopicPartition
from tests.unit.sequences import pairs, prompt, response, text
from tests.unit.streams import TOPICS, FailingPublisher, Stream

SECRET = text(1, 30)
BLEED = [prompt("a", "1", 0, SECRET), response("b", "2", 5, SECRET)]
AT = TopicPartition(TOPICS.sequences, 0)


def test_nothing_is_committed_that_is_not_acknowledged() -> None:
    stream = Stream()
    runner = stream.runner(publisher=FailingPublisher(stream, after=0))
    runner.start()
    stream.send([*BLEED, prompt("x", "3", 20, text(2, 30))])
    with pytest.raises(BrokerError, match="went away"):
        runner.catch_up()
    assert AT not in runner.committed
    again = stream.runner()
    again.start(committed=runner.committed)
    again.finish()
    assert pairs(stream.findings()) == {("2", "a")}
    assert again.committed == {AT: 3}


def test_silence_ends_waiting_once() -> None:
    stream = Stream()
    runner = stream.runner(idle_s=0.4)
    runner.start()
    stream.send(BLEED)
    runner.turn()
    assert not stream.findings()
    stream.now_ms += 300
    runner.turn()
    assert not stream.findings()
    stream.now_ms += 200
    runner.turn()
    assert pairs(stream.findings()) == {("2", "a")}
    assert runner.committed == {AT: 2}


def test_a_partition_that_hears_nothing_is_not_kept_waiting_by_one_that_does() -> None:
    stream = Stream(partitions=2)
    handler = stream.handler()
    runner = stream.runner(handler, idle_s=0.4)
    runner.start()
    stream.send(BLEED)
    runner.turn()
    (quiet,) = (n for n, held in handler.held.items() if held.window.sequencer.newest_ms)
    others = (name for name in map(str, range(20)) if not _is_in(stream, quiet, name))
    pool = next(others)
    for at_s in range(7, 12):
        stream.send([prompt("x", f"x{at_s}", at_s, text(at_s, 30), pool=pool)])
        runner.turn()
    assert pairs(stream.findings()) == {("2", "a")}


def _is_in(stream: Stream, partition: int, pool: str) -> bool:
    before = stream.broker.reader().end(TopicPartition(TOPICS.sequences, partition))
    stream.send([prompt("y", pool, 6, text(999, 12), pool=pool)])
    after = stream.broker.reader().end(TopicPartition(TOPICS.sequences, partition))
    return after > before


def test_only_the_partitions_that_are_asked_for_are_read() -> None:
    stream = Stream(partitions=4)
    handler = stream.handler()
    runner = stream.runner(handler)
    runner.start([1, 3])
    assert set(handler.held) == {1, 3}
    stream.send([prompt("x", f"{at}", at, text(at, 30), pool=f"p{at}") for at in range(40)])
    runner.finish()
    ends = {n: stream.broker.reader().end(TopicPartition(TOPICS.sequences, n)) for n in (1, 3)}
    assert runner.committed == {TopicPartition(TOPICS.sequences, n): end for n, end in ends.items()}
    runner.stop()
    assert not handler.held
    assert not runner.turn()
