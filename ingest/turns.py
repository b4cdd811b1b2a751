"""Carries records to the handler and its messages to the broker, one turn at a time.

A turn is: the handler takes a batch, the broker acknowledges what came of it, the ledger notes what
is done. Handler calls run on a thread of their own, so that the loop keeps talking to the brokers;
turns never overlap. Whatever goes wrong for good ends the process before anything is noted: what
was not committed comes again.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, Protocol, TypeVar

from detector.errors import StreamError
from ingest.broker import BrokerRecord, Message, Reader, TopicPartition
from ingest.ledger import Held, Ledger
from ingest.rewind import reachable, rewind
from ingest.stream import Clock, Handler, Outcome

_log = logging.getLogger(__name__)

T = TypeVar("T")

SETTLE_S: Final = 20.0
"""How long a rebalance waits for the running turn; a third of Faust's rebalance time-out."""

PLACE_S: Final = 50.0
"""How long placing partitions may take: after 60 s Faust would read on without it."""

RETRY_FIRST_S: Final = 0.1
RETRY_LONGEST_S: Final = 5.0
RETRY_FOR_S: Final = 300.0
"""Sending is tried again for this long, then the process ends: a restart may find other brokers."""


class Send(Protocol):
    """Sends messages in order and waits for the broker; returns how many it acknowledged.

    Fewer than all means that the next one failed; those behind it count as not sent.
    """

    def __call__(self, messages: Sequence[Message]) -> Awaitable[int]:
        """Send."""
        ...


class Turns:
    """The turns of one worker; `Assignments` of the stream library's consumer as well."""

    def __init__(
        self,
        handler: Handler,
        ledger: Ledger,
        *,
        send: Send,
        reader: Reader,
        beat: Callable[[], None],
        warmed_up: Callable[[int, float, int], None],
        clock: Clock = time.monotonic,
    ) -> None:
        self._handler = handler
        self._ledger = ledger
        self._send = send
        self._reader = reader
        self._beat = beat
        self._warmed_up = warmed_up
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "detection")
        self._turn = asyncio.Lock()
        self._open = asyncio.Event()
        self.assigned = False
        """True once the group has said which partitions are ours, be it none."""

    async def take(self, records: Callable[[], Iterable[BrokerRecord]]) -> None:
        """Carry a batch through; `records` is called when its turn has come.

        Waits while partitions are being moved. Raises whatever the handler raises, StreamError, and
        what sending raised last when it has failed for too long.
        """
        await self._open.wait()
        async with self._turn:
            batches: dict[int, list[BrokerRecord]] = defaultdict(list)
            for record in records():
                if self._ledger.accept(record):
                    batches[record.partition].append(record)
            steps = [
                (partition, partial(self._handler.take, partition, batch))
                for partition, batch in batches.items()
            ]
            await self._carry(steps)
            for told in self._ledger.newly_warm():
                self._warmed_up(*told)

    async def idle(self, caught_up: Callable[[int], bool], idle_s: float) -> None:
        """Finish partitions that are read to the end and have had nothing new for a while.

        As long as that lasts, again and again: it is when the handler hears of other workers.
        """
        self._beat_if_free()
        for partition, held in self._ledger:
            quiet = self._clock() - held.heard >= idle_s
            if quiet and self._open.is_set() and not self._turn.locked() and caught_up(partition):
                async with self._turn:
                    held.heard = self._clock()
                    await self._carry([(partition, partial(self._handler.idle, partition))])
        for told in self._ledger.newly_warm():
            self._warmed_up(*told)

    async def before_revoke(self) -> None:
        """Take nothing more; wait for the running turn, for a bounded time."""
        await self.settle(SETTLE_S)

    async def settle(self, timeout_s: float) -> None:
        """Take nothing more, and wait for the running turn until the time is over."""
        self._open.clear()
        try:
            async with asyncio.timeout(timeout_s), self._turn:
                pass
        except TimeoutError:
            _log.warning("a batch still runs: what it holds will be repeated")

    async def after_assign(self, assigned: frozenset[TopicPartition]) -> None:
        """Forget the partitions that are no longer ours."""
        ours = {at.partition for at in assigned}
        for partition, _ in self._ledger:
            if partition not in ours:
                await self._forget(partition)
        self.assigned = True
        self._open.set()

    async def place(
        self,
        assigned: frozenset[TopicPartition],
        committed: Mapping[TopicPartition, int],
    ) -> Mapping[TopicPartition, int]:
        """Rebuild what is new from where its window needs it; go on with what we have.

        Raises StreamError if the inputs of a partition are not all here, or if it takes too long.
        """
        try:
            async with asyncio.timeout(PLACE_S):
                return await self._placed(assigned, committed)
        except TimeoutError:
            raise StreamError(
                f"the partitions were not ready to be read within {PLACE_S:g} s",
                where=", ".join(self._ledger.topics),
                hint="check that the brokers answer; with very many partitions start more workers",
            ) from None

    async def _placed(
        self, assigned: frozenset[TopicPartition], committed: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        positions: dict[TopicPartition, int] = {}
        for partition in sorted({at.partition for at in assigned}):
            ours = [TopicPartition(topic, partition) for topic in self._ledger.topics]
            if not assigned.issuperset(ours):
                raise StreamError(
                    "only some inputs of a partition were assigned",
                    where=f"partition {partition}",
                    hint="all workers of a group need the same topics and the same version",
                )
            known = {at: committed[at] for at in ours if at in committed}
            if not self._ledger.continues(partition, known):
                await self._begin(partition, known)
            positions |= self._ledger.positions(partition)
        return positions

    def finished(self) -> Mapping[TopicPartition, int]:
        """Return what may be committed."""
        return self._ledger.finished()

    def close(self) -> None:
        """Start nothing more; a handler call that runs is not waited for."""
        self._open.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _begin(self, partition: int, committed: Mapping[TopicPartition, int]) -> None:
        await self._forget(partition)
        known = await self._call(lambda: reachable(self._reader, committed))
        for at in committed.keys() - known.keys():
            _log.warning("%s-%d ends before what was finished: read anew", *at)
        positions = await self._call(
            lambda: rewind(
                self._reader,
                partition,
                topics=self._ledger.topics,
                committed=known,
                warm_from_ms=self._handler.warm_from_ms,
            )
        )
        await self._call(lambda: self._handler.assign(partition, known))
        self._ledger.place(partition, positions, known)

    async def _forget(self, partition: int) -> None:
        if self._ledger.get(partition) is not None:
            self._ledger.drop(partition)
            await self._call(lambda: self._handler.revoke(partition))

    async def _carry(self, steps: Iterable[tuple[int, Callable[[], Outcome]]]) -> None:
        """Call the handler for some partitions; deliver what came of all in one go, then note it.

        One by one, each partition would wait for the broker's answer to the one before it.
        """
        outcomes: list[tuple[int, Held, Outcome]] = []
        for partition, step in steps:
            held = self._ledger.get(partition)
            if held is not None:  # it may have been moved away meanwhile
                outcomes.append((partition, held, await self._call(step)))
        await self._deliver([message for *_, each in outcomes for message in each.messages])
        for partition, held, outcome in outcomes:
            self._ledger.finish(held, partition, outcome.done)

    async def _call(self, step: Callable[[], T]) -> T:
        self._beat()
        return await asyncio.get_running_loop().run_in_executor(self._thread, step)

    async def _deliver(self, messages: Sequence[Message]) -> None:
        """Send until all is acknowledged, in order: from the first that failed, all again."""
        left, pause, until = list(messages), RETRY_FIRST_S, self._clock() + RETRY_FOR_S
        while left:
            self._beat()
            acknowledged = await self._send(left)
            if acknowledged:
                pause = RETRY_FIRST_S
            del left[:acknowledged]
            if left:
                if self._clock() > until:
                    raise StreamError(
                        f"{len(left)} results could not be sent within {RETRY_FOR_S:g} s",
                        where=left[0].topic,
                        hint="check the brokers, the topic and its size limit; what was not "
                        "committed comes again after a restart",
                    )
                await asyncio.sleep(pause)
                pause = min(2 * pause, RETRY_LONGEST_S)

    def _beat_if_free(self) -> None:
        if not self._turn.locked():
            self._beat()
