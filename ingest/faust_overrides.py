"""All that we change inside Faust, each change a method of `StreamConsumer` with its reason.

Written against faust-streaming 0.15.3, which constraints.txt pins; each has a test of its own in
tests/integration/test_faust_overrides.py, to be read before another version is taken.
"""

from collections.abc import Coroutine, Iterable, Iterator, Mapping
from typing import Final, Protocol

import faust
from faust.transport.drivers.aiokafka import Consumer, Transport
from faust.types import TP, Message, TransportT
from faust.types.transports import TPorTopicSet
from mode.services import WaitArgT, WaitResults
from mode.utils.times import Seconds

from ingest.broker import TopicPartition

DELIVER_OR_SUSPEND: Final = 2
"""What Faust's fetcher waits for the first of, for every record."""


class Assignments(Protocol):
    """Who decides, in place of Faust, from where to read and what to commit."""

    async def before_revoke(self) -> None:
        """Take nothing more and wait until what was taken is finished with, for a bounded time."""
        ...

    async def after_assign(self, assigned: frozenset[TopicPartition]) -> None:
        """Forget what is no longer ours."""
        ...

    async def place(
        self,
        assigned: frozenset[TopicPartition],
        committed: Mapping[TopicPartition, int],
    ) -> Mapping[TopicPartition, int]:
        """Return from where each assigned partition is to be read, and make ready for it."""
        ...

    def finished(self) -> Mapping[TopicPartition, int]:
        """Return what may be committed."""
        ...


class StreamApp(faust.App):
    """A Faust app whose consumer asks `assignments` for positions and for what may be committed."""

    assignments: Assignments

    def _new_transport(self) -> TransportT:
        """Return Faust's transport with our consumer: there is no setting for it."""
        return _Transport(self.conf.broker_consumer, self)


class StreamConsumer(Consumer):
    """Faust's consumer, with the ledger of `assignments` in place of its own."""

    app: StreamApp
    _settled = False
    """True between an assignment and the next revocation."""

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Finish and commit the running batch first.

        Faust forgets here what was acknowledged and not committed, and with stream_wait_empty off
        it commits nothing. Switched on, it would wait for ever for records that wait for others.
        """
        self._settled = False
        await self.app.assignments.before_revoke()
        await self.commit()
        await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Say what is ours before Faust asks, in `perform_seek`, from where to read."""
        await self.app.assignments.after_assign(_plain(assigned))
        self._settled = True
        await super().on_partitions_assigned(assigned, generation_id)

    async def perform_seek(self) -> None:
        """Read from where the window needs it, not from the committed offset.

        Faust calls this last of all after each assignment, so a seek anywhere else is undone; and
        between revocation and assignment from its fetcher, where there is nothing to seek in.
        """
        if not self._settled:
            return
        await super().perform_seek()
        mine = _plain(self.assignment())
        committed = {at: self._committed_offset[TP(*at)] for at in mine}
        known = {at: offset for at, offset in committed.items() if offset is not None}
        for at, offset in (await self.app.assignments.place(mine, known)).items():
            await self.seek(TP(*at), offset)

    def ack(self, message: Message) -> bool:
        """Let go of a record, without a say in what is committed.

        Faust acknowledges records that it skips after a rebalance and commits past a single
        unacknowledged one; so its own ledger of acknowledgements is not used at all.
        """
        if message.acked:
            return False
        message.acked = True
        self._unacked_messages.discard(message)
        return True

    def _filter_tps_with_pending_acks(
        self,
        topics: TPorTopicSet | None = None,  # noqa: ARG002 - asked for by no caller
    ) -> Iterator[TP]:
        """Consider every partition for a commit: the acknowledgements say nothing."""
        return (TP(*at) for at in self.app.assignments.finished())

    def _filter_committable_offsets(self, tps: Iterable[TP]) -> dict[TP, int]:
        """Commit what is finished with, where that is more than was committed."""
        finished = {TP(*at): offset for at, offset in self.app.assignments.finished().items()}
        return {
            tp: finished[tp]
            for tp in tps
            if tp in finished and finished[tp] > (self._committed_offset[tp] or 0)
        }

    async def wait_first(
        self,
        *coros: WaitArgT,
        timeout: Seconds = None,  # type: ignore[assignment]
    ) -> WaitResults:
        """Deliver a record without the four tasks that Faust makes to be able to interrupt it.

        It asks this for every record: a delivery, or the flow is suspended. While the flow goes and
        no queue is full, a delivery never waits. Measured: 187 us of CPU for a record of 1 KB
        become 105 us, 1,160 us for one of 256 KB become 830 us.
        """
        if (
            len(coros) == DELIVER_OR_SUSPEND
            and timeout is None
            and self.flow_active
            and self.app.flow_control.is_active()
            and not any(topic.queue.full() for topic in self.app.topics)
        ):
            deliver, suspended = coros
            if isinstance(deliver, Coroutine) and isinstance(suspended, Coroutine):
                suspended.close()
                return WaitResults([deliver], [await deliver], stopped=False)
        return await super().wait_first(*coros, timeout=timeout)

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Keep no list of missing offsets: only Faust's own ledger needs it, and it would grow."""


class _Transport(Transport):
    Consumer = StreamConsumer


def _plain(partitions: Iterable[TP]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(at.topic, at.partition) for at in partitions)
