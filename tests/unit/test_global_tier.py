"""Two workers with pools of their own: what went to a tenant of another pool is found."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from detector.finding import Confidence, Finding
from detector.index.selection import sampling_of
from detector.index.shared_memory import SharedMemory
from detector.match.response_sketches import ResponseSketches
from detector.model import Hashes, Role, Sequence, Span
from detector.sketch.tag_keys import TagKeys
from detector.streaming.bands_exchange import BandsExchange
from detector.streaming.bands_feed import BandsFeed
from detector.streaming.exchange import Exchange
from detector.streaming.global_tier import GlobalTierHandler
from detector.streaming.monitor import Monitor
from ingest.broker import Message, TopicPartition
from ingest.memory_runner import MemoryRunner
from ingest.partitioning import partition_of
from tests.unit.sequences import SETTINGS, join, pairs, prompt, response, text
from tests.unit.streams import TOPICS, Stream
from tests.unit.wire import RING, SECRET

PARTITIONS, WORKERS = 4, 2
HOME = {f"pool-{n}": partition_of(f"pool-{n}".encode(), PARTITIONS) for n in range(16)}
HERE = next(pool for pool, home in HOME.items() if home % WORKERS == 0)
THERE = next(pool for pool, home in HOME.items() if home % WORKERS == 1)
MEMORY = 64 * 2**20
ANSWER = text(1, 400)


class Group:
    """Workers on one stream; worker w has the partitions that are w modulo their number."""

    def __init__(self, *, tier: bool = True, memory_bytes: int = MEMORY) -> None:
        self.stream = Stream(partitions=PARTITIONS)
        self._memory_bytes = memory_bytes
        self._tier = tier
        self.exchanges: dict[int, BandsExchange] = {}
        self.runners = [self.join(at, committed={}) for at in range(WORKERS)]

    def join(self, worker: int, *, committed: Mapping[TopicPartition, int]) -> MemoryRunner:
        """Start a process that takes a worker's partitions over."""
        if self._tier:
            keys = TagKeys(SECRET.keys().tag_key)
            sketches = ResponseSketches(SETTINGS.copies, keys)
            memory = SharedMemory(SETTINGS.commonness, keys)  # its party numbers are everybody's
            core = self.stream.handler(sketches=sketches, memory=memory)
            exchange = self.exchanges[worker] = BandsExchange(
                SETTINGS, ring=lambda: RING, ranges=PARTITIONS, topic=TOPICS.bands,
                memory_bytes=self._memory_bytes,
            )  # fmt: skip
            feed = BandsFeed(self.stream.broker.reader(), exchange)
            handler: Any = GlobalTierHandler(
                core, core, sketches=sketches, exchange=exchange, feed=feed
            )
        else:
            handler = self.stream.handler()
        runner = MemoryRunner(
            handler, reader=self.stream.broker.reader(), publisher=self.stream.publisher,
            topics=TOPICS.inputs, idle_s=0.0,
        )  # fmt: skip
        runner.start(range(worker, PARTITIONS, WORKERS), committed=committed)
        return runner

    def restart(self) -> None:
        """End all processes in the middle; others take over from what was committed."""
        self.runners = [
            self.join(at, committed=dead.committed) for at, dead in enumerate(self.runners)
        ]

    def send(self, *sequences: Sequence) -> None:
        """Send sequences one by one and let everybody work until nobody has anything to say."""
        for sequence in sequences:
            self.stream.send([sequence])
            self.settle()

    def settle(self) -> None:
        before = -1
        while before != (before := len(self.stream.sent(TOPICS.bands)) + len(self.findings())):
            for runner in self.runners:
                runner.finish()

    def findings(self) -> list[Finding]:
        """Return every finding that was sent, repeats included."""
        return self.stream.findings()


def edited(share: float, name: int = 9) -> Hashes:
    """Return the answer with so much of it replaced."""
    draw = np.random.default_rng(name)
    tokens = ANSWER.copy()
    at = np.flatnonzero(draw.random(len(tokens)) < share)
    tokens[at] = draw.integers(0, 2**32, len(at), np.uint32)
    return tokens


def asked(tenant: str, at_s: float, question: Hashes, pool: str) -> Sequence:
    """Return a prompt whose every token is a last user turn."""
    spans = (Span(Role.USER, 0, len(question)),)
    return prompt(tenant, f"{tenant}1", at_s, question, pool=pool, spans=spans)


def swap(tokens: Hashes = ANSWER, **more: Any) -> list[Sequence]:
    """Return an answer to `a` here, and one to `b` there that may be the same."""
    return [
        asked("a", 0, text(11, 30), HERE),
        response("a", "a1", 0, ANSWER, pool=HERE),
        asked("b", 10, text(12, 30), THERE),
        response("b", "b1", 10, tokens, pool=THERE, **more),
    ]


def found(sequences: Iterable[Sequence], *, tier: bool = True) -> list[Finding]:
    group = Group(tier=tier)
    group.send(*sequences)
    return group.findings()


@pytest.mark.parametrize(("share", "least"), [(0.0, 0.99), (0.05, 0.7)])
def test_a_whole_response_in_another_pool_is_found_once(share: float, least: float) -> None:
    (one,) = {each.id: each for each in found(swap(edited(share)))}.values()
    assert (one.sink.request_id, one.source.request_id) == ("b1", "a1")
    assert (one.rule, one.confidence, one.kv_pool) == ("BW003", Confidence.MEDIUM, THERE)
    assert (one.evidence.similarity or 0) >= least
    assert one.evidence.runs == ()
    assert HERE in one.explanation


def test_off_it_finds_nothing_and_tells_nobody() -> None:
    group = Group(tier=False)
    group.send(*swap())
    assert group.findings() == []
    assert group.stream.sent(TOPICS.bands) == []


def test_the_order_of_arrival_does_not_matter() -> None:
    first, then = swap()[:2], swap()[2:]
    assert pairs(found([*then, *first])) == {("b1", "a")}


def test_another_answer_is_nothing() -> None:
    assert found(swap(edited(0.4))) == []


def test_a_short_answer_is_nothing() -> None:
    short = [
        response("a", "a1", 0, ANSWER[:100], pool=HERE),
        response("b", "b1", 10, ANSWER[:100], pool=THERE),
    ]
    assert found(short) == []


def test_an_answer_long_ago_is_nothing() -> None:
    late = [
        response("a", "a1", 0, ANSWER, pool=HERE),
        response("b", "b1", 301, ANSWER, pool=THERE),
    ]
    assert found(late) == []
    late[1] = response("b", "b1", 299, ANSWER, pool=THERE)
    assert pairs(found(late)) == {("b1", "a")}


@pytest.mark.parametrize("alike", [1.0, 0.8])
def test_the_same_question_explains_it(alike: float) -> None:
    question = text(13, 60)
    other = join(question[: round(60 * alike)], text(14, 60 - round(60 * alike)))
    sequences = swap()
    sequences[0] = asked("a", 0, question, HERE)
    sequences[2] = asked("b", 10, other, THERE)
    assert found(sequences) == []


@pytest.mark.parametrize(
    "more",
    [{"gateway_cache_hit": True}, {"account": "x"}, {"parent_id": "a1"}],
    ids=["gateway cache", "same account", "sibling"],
)
def test_what_is_true_of_the_pair_explains_it(more: dict[str, Any]) -> None:
    sequences = swap(**more)
    if "account" in more:
        sequences[1].account = "x"
    assert found(sequences) == []


def test_what_the_receiver_sent_itself_explains_it() -> None:
    sequences = swap()
    sequences[2] = asked("b", 10, join(ANSWER, text(15, 20)), THERE)
    assert found(sequences) == []


def test_a_stock_answer_is_nothing() -> None:
    sequences = swap()
    third = response("c", "c1", 5, ANSWER, pool=HERE, gateway_cache_hit=True)
    assert found([*sequences[:2], third, *sequences[2:]]) == []


def test_an_answer_that_the_receiver_had_before_is_nothing() -> None:
    before = [response("b", "b0", -20, ANSWER, pool=THERE)]
    assert not {("b1", "a")} & pairs(found([*before, *swap()]))


def test_a_restarted_owner_still_knows_the_first_answer() -> None:
    group = Group()
    group.send(*swap()[:2])
    group.restart()
    group.send(*swap()[2:])
    assert pairs(group.findings()) == {("b1", "a")}
    assert sum(len(one.known) for one in group.exchanges.values()) == 2 * WORKERS


def test_what_was_sent_is_not_sent_again_after_a_restart() -> None:
    group = Group()
    group.send(*swap())
    group.send(asked("d", 20, text(16, 30), HERE), asked("e", 21, text(17, 30), THERE))
    sent = len(group.findings())
    assert sent <= WORKERS
    group.restart()
    group.settle()
    assert len(group.findings()) == sent


def test_what_was_found_and_not_sent_is_sent_by_the_next_owner() -> None:
    group = Group()
    group.send(*swap()[:2])
    group.stream.send(swap()[2:])
    group.runners[1].finish()  # it tells what it has seen, and nobody has judged that yet
    group.restart()
    group.settle()
    assert pairs(group.findings()) == {("b1", "a")}


def test_a_record_that_comes_twice_makes_no_second_finding() -> None:
    group = Group()
    group.send(*swap())
    sent = len(group.findings())
    for record in group.stream.sent(TOPICS.bands):
        group.stream.publisher.send(
            as_message(record.topic, record.value, record.partition)
        ).result()
    group.settle()
    assert len(group.findings()) == sent


def as_message(topic: str, value: bytes | None, partition: int) -> Message:
    """Return a record as a message."""
    return Message(topic, value, partition=partition)


def test_a_changed_or_moved_record_is_counted_and_skipped() -> None:
    group = Group()
    group.send(*swap()[:2])
    told = group.stream.sent(TOPICS.bands)[0]
    value = told.value or b""
    other = (told.partition + WORKERS) % PARTITIONS
    for partition, bad in ((told.partition, value[:-1] + b"?"), (other, value), (other, b"x")):
        group.stream.publisher.send(as_message(TOPICS.bands, bad, partition)).result()
    group.send(*swap()[2:])
    bad_records = dict(group.exchanges[told.partition % WORKERS].bad_records)
    assert bad_records == {"seal_broken": 2, "malformed": 1}
    assert pairs(group.findings()) == {("b1", "a")}


def test_what_is_refused_and_given_up_is_counted_for_the_metrics() -> None:
    group = Group(memory_bytes=1)
    group.send(*swap())
    bad = as_message(TOPICS.bands, b"x", 0)
    group.stream.publisher.send(bad).result()
    group.settle()
    memory = SharedMemory(SETTINGS.commonness, TagKeys(SECRET.keys().tag_key))
    common = Exchange(
        memory, SETTINGS.commonness, key_id=RING.key_id, sampling=sampling_of(SETTINGS.index),
        ranges=PARTITIONS, prefix="t", writer=b"",
    )  # fmt: skip
    core = group.stream.handler(memory=memory)
    sharing = (
        Monitor(core, learning_ms=0, exchange=common, bands=group.exchanges[0]).state().sharing
    )
    assert dict(sharing.refused) == {"malformed": 1}
    assert sharing.evicted_sketches == group.exchanges[0].known.evicted > 0
