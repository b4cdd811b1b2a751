"""Two workers, each with half of the partitions of one broker: what is common is one view."""

from collections.abc import Iterable, Mapping

import pytest

from detector.finding import Finding
from detector.index.memory import Memory
from detector.index.selection import sampling_of
from detector.index.shared_memory import SharedMemory
from detector.model import Sequence
from detector.sketch.tag_keys import TagKeys
from detector.streaming.commonness_feed import CommonnessFeed
from detector.streaming.exchange import Exchange
from detector.streaming.sharing import SharingHandler
from ingest.broker import TopicPartition
from ingest.memory_runner import MemoryRunner
from ingest.partitioning import partition_of
from tests.unit.sequences import SETTINGS, join, pairs, prompt, response, text
from tests.unit.sharing import KEY_ID, TAG_KEY
from tests.unit.streams import TOPICS, Stream, surest

PARTITIONS = 4
POOLS = [f"pool-{number}" for number in range(8)]
HOME = {pool: partition_of(pool.encode(), PARTITIONS) for pool in POOLS}
HERE = next(pool for pool in POOLS if HOME[pool] % 2 == 0)
THERE = next(pool for pool in POOLS if HOME[pool] % 2 == 1)
PHRASES = [text(1_000 + number, 24) for number in range(24)]


class Group:
    """Workers on one stream; worker w has the partitions that are w modulo their number."""

    def __init__(self, *, share: bool = True, workers: int = 2) -> None:
        self.stream = Stream(partitions=PARTITIONS)
        self._share = share
        self._made = 0
        self.feeds: list[CommonnessFeed] = []
        self.runners = [
            self.join(range(at, PARTITIONS, workers), committed={}) for at in range(workers)
        ]

    def join(
        self, partitions: Iterable[int], *, committed: Mapping[TopicPartition, int]
    ) -> MemoryRunner:
        """Start a process that takes partitions over."""
        self._made += 1
        if not self._share:
            runner = self.stream.runner(self.stream.handler(memory=Memory(SETTINGS.commonness)))
        else:
            memory = SharedMemory(SETTINGS.commonness, TagKeys(TAG_KEY))
            exchange = Exchange(
                memory, SETTINGS.commonness, key_id=KEY_ID,
                sampling=sampling_of(SETTINGS.index), ranges=PARTITIONS, prefix="t",
                writer=b"worker%02d" % self._made,
            )  # fmt: skip
            feed = CommonnessFeed(self.stream.broker.reader(), exchange)
            self.feeds.append(feed)
            assert feed.start(timeout_s=5)
            sharing = SharingHandler(self.stream.handler(memory=memory), exchange, feed)
            runner = MemoryRunner(
                sharing, reader=self.stream.broker.reader(), publisher=self.stream.publisher,
                topics=TOPICS.inputs, idle_s=0.0,
            )  # fmt: skip
        runner.start(partitions, committed=committed)
        return runner

    def kill(self, worker: int) -> None:
        """End a process in the middle; another one takes its partitions over."""
        dead = self.runners[worker]
        mine = range(worker, PARTITIONS, len(self.runners))
        self.runners[worker] = self.join(mine, committed=dead.committed)

    def send(self, *sequences: Sequence) -> None:
        """Send sequences one by one and let everybody work until all is told."""
        for sequence in sequences:
            self.stream.send([sequence])
            self.settle()

    def settle(self) -> None:
        """Let everybody work until nothing new is told."""
        before = -1
        while before != (before := self._lying()):
            for runner in self.runners:
                runner.finish()

    def findings(self) -> list[Finding]:
        """Return the surest version of every finding."""
        return list(surest(self.stream.findings()).values())

    def _lying(self) -> int:
        return len(self.stream.sent(TOPICS.shingles)) + len(self.stream.sent(TOPICS.commonness))


@pytest.mark.parametrize("share", [True, False])
def test_a_phrase_of_tenants_at_the_other_worker_is_common(share: bool) -> None:
    group = Group(share=share)
    group.send(prompt("c", "c1", 0, PHRASES[0], pool=THERE))
    group.send(prompt("a", "a1", 10, join(text(1, 20), PHRASES[0]), pool=HERE))
    group.send(response("b", "b1", 20, join(text(2, 20), PHRASES[0]), pool=HERE))
    assert pairs(group.findings()) == (set() if share else {("b1", "a")})


def test_a_bleed_that_repeats_across_pools_stays_found() -> None:
    group = Group()
    secret = text(3, 40)
    wanted = set()
    for turn in range(8):
        pool, at, victim = (HERE, THERE)[turn % 2], turn * 60, f"v{turn}"
        group.send(
            prompt("origin", f"o{turn}", at, join(text(10 + turn, 20), secret), pool=pool),
            response(victim, victim, at + 5, join(text(30 + turn, 9), secret), pool=pool),
            prompt(victim, f"e{turn}", at + 20, join(secret, text(50 + turn, 9)), pool=pool),
        )
        wanted.add((victim, "origin"))
    assert pairs(group.findings()) >= wanted


def stock_traffic() -> list[Sequence]:
    """Return clean traffic: a phrase is shown at one worker, then twice at the other.

    Between the two lie so many others that every worker may have been killed meanwhile.
    """
    first, then = [], []
    for number, phrase in enumerate(PHRASES):
        here, there = (HERE, THERE) if number % 2 else (THERE, HERE)
        words = [join(text(at + number, 12), phrase) for at in (100, 200, 300)]
        at = number * 30
        first.append(prompt("c", f"c{number}", at, words[0], pool=there))
        then += [
            prompt("a", f"a{number}", at + 600, words[1], pool=here),
            response("b", f"b{number}", at + 610, words[2], pool=here),
        ]
    return [*first, *then]


def false_findings(*, share: bool = True, kill_every: int = 0, workers: int = 2) -> int:
    group = Group(share=share, workers=workers)
    for number, sequence in enumerate(stock_traffic()):
        if kill_every and number % kill_every == kill_every - 1:
            group.kill(number // kill_every % workers)
        group.send(sequence)
    return len(group.findings())


def test_clean_traffic_stays_clean_over_two_workers() -> None:
    assert false_findings(workers=1, share=False) == 0
    assert false_findings() == 0
    assert false_findings(share=False) == len(PHRASES)


@pytest.mark.parametrize("kill_every", [3, 7, 20])
def test_owners_that_are_killed_raise_no_false_findings(kill_every: int) -> None:
    """A killed worker takes its ranges and its memory along; the next one reads them again."""
    assert false_findings(kill_every=kill_every) == 0
    assert false_findings(kill_every=kill_every, share=False) >= len(PHRASES)


def test_an_owner_without_input_of_its_own_goes_on_telling() -> None:
    """All traffic is at one worker; the other one owns half of the ranges and hears nothing else.

    Its only turns are those of silence.
    """
    group = Group()
    busy, quiet = group.runners
    for number, tenant in enumerate("cda"):
        group.stream.send([prompt(tenant, tenant, number, PHRASES[0], pool=HERE)])
        busy.turn()
        quiet.turn()
    told = group.stream.sent(TOPICS.commonness)
    assert {record.partition for record in told} == set(range(PARTITIONS))


def test_what_others_have_told_is_read_before_a_partition_begins() -> None:
    group = Group()
    late = group.join([], committed={})
    group.send(*(prompt(tenant, tenant, 0, PHRASES[0], pool=THERE) for tenant in "cd"))
    told = len(group.stream.sent(TOPICS.commonness))
    in_range = sum(record.partition == 0 for record in group.stream.sent(TOPICS.shingles))
    late.start([0])
    assert group.feeds[-1].behind() == in_range > 0, "of its range, and of nothing else"
    for _ in range(4):
        late.turn()
    assert len(group.stream.sent(TOPICS.commonness)) == told
