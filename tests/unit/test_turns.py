"""The turns of a worker: handed over, sent, acknowledged, and only then done."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from detector.errors import StreamError
from ingest import turns as module
from ingest.broker import BrokerRecord, Message, TopicPartition
from ingest.ledger import Ledger
from ingest.memory_io import MemoryBroker
from ingest.turns import Turns
from tests.streams.pairs import PairHandler

AT = TopicPartition("input", 0)
OTHER = TopicPartition("other", 0)


class Broker:
    """Acknowledges as many messages as it is told to, each time it is asked."""

    def __init__(self, *takes: int) -> None:
        self._takes = list(takes)
        self.tried: list[Sequence[bytes | None]] = []

    async def __call__(self, messages: Sequence[Message]) -> int:
        self.tried.append([message.value for message in messages])
        return self._takes.pop(0) if self._takes else len(messages)


class Case:
    def __init__(self, send: Broker | None = None, inputs: Sequence[str] = ("input",)) -> None:
        self.told: list[dict[str, object]] = []
        self.broker = send or Broker()
        self.ledger = Ledger(inputs)
        self.warm: list[tuple[int, float, int]] = []
        self.turns = Turns(
            PairHandler("results", lambda **words: self.told.append(words)),
            self.ledger,
            send=self.broker,
            reader=MemoryBroker(dict.fromkeys(inputs, 2)).reader(),
            beat=lambda: None,
            warmed_up=lambda *told: self.warm.append(told),
        )

    async def assigned(self, committed: Mapping[TopicPartition, int] | None = None) -> None:
        await self.turns.after_assign(frozenset([AT]))
        await self.turns.place(frozenset([AT]), committed or {})


def records(*texts: str) -> Callable[[], list[BrokerRecord]]:
    return lambda: [
        BrokerRecord("input", 0, offset, None, text.encode(), (), 0)
        for offset, text in enumerate(texts)
    ]


def run(case: Case, steps: Callable[[], Awaitable[None]]) -> None:
    async def all_steps() -> None:
        try:
            await steps()
        finally:
            case.turns.close()

    asyncio.run(all_steps())


def test_done_follows_the_acknowledgement() -> None:
    case = Case()

    async def steps() -> None:
        await case.assigned()
        await case.turns.take(records("1000 a", "2000 a", "3000 b"))
        assert case.broker.tried == [[b"0 a 1000 2000"]]
        assert case.turns.finished() == {AT: 2}, "the last one waits for others"
        await case.turns.idle(lambda _partition: False, 0)
        assert case.turns.finished() == {AT: 2}, "there may be more to read"
        await case.turns.idle(lambda _partition: True, 0)
        assert case.turns.finished() == {AT: 3}

    run(case, steps)


def test_from_the_first_that_failed_all_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_FIRST_S", 0.001)
    case = Case(Broker(1, 0, 2))

    async def steps() -> None:
        await case.assigned()
        await case.turns.take(records("1 a", "2 a", "3 a", "999 b"))
        sent = [b"0 a 1 2", b"0 a 1 3", b"0 a 2 3"]
        assert case.broker.tried == [sent, sent[1:], sent[1:]]
        assert case.turns.finished() == {AT: 3}

    run(case, steps)


def test_what_cannot_be_sent_for_too_long_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_FOR_S", 0.0)
    case = Case(Broker(0, 0, 0, 0))

    async def steps() -> None:
        await case.assigned()
        with pytest.raises(StreamError, match="could not be sent"):
            await case.turns.take(records("1 a", "2 a", "999 b"))
        assert case.turns.finished() == {}

    run(case, steps)


def test_nothing_is_taken_while_partitions_move() -> None:
    case = Case()

    async def steps() -> None:
        await case.assigned()
        await case.turns.before_revoke()
        waiting = asyncio.create_task(case.turns.take(records("1 a")))
        await asyncio.sleep(0.05)
        assert not any(told["event"] == "take" for told in case.told)
        await case.assigned()
        await waiting
        assert [told["event"] for told in case.told] == ["assign", "take"]

    run(case, steps)


def test_a_lost_partition_is_forgotten_and_a_kept_one_goes_on() -> None:
    case = Case()

    async def steps() -> None:
        await case.assigned()
        await case.turns.take(records("1 a", "2 a"))
        assert await case.turns.place(frozenset([AT]), {}) == {AT: 2}
        await case.turns.after_assign(frozenset())
        assert [told["event"] for told in case.told] == ["assign", "take", "revoke"]
        await case.assigned({AT: 0})
        assert case.told[-1]["event"] == "assign"

    run(case, steps)


def test_a_partition_that_others_have_read_further_begins_anew() -> None:
    case = Case()

    async def steps() -> None:
        await case.assigned()
        await case.turns.take(records("1 a", "999 b"))
        assert case.turns.finished() == {AT: 1}
        await case.turns.place(frozenset([AT]), {AT: 2})
        assert [told["event"] for told in case.told] == ["assign", "take", "revoke", "assign"]

    run(case, steps)


def test_half_a_partition_is_refused() -> None:
    case = Case(inputs=("input", "other"))

    async def steps() -> None:
        await case.turns.after_assign(frozenset([AT]))
        with pytest.raises(StreamError, match="only some inputs"):
            await case.turns.place(frozenset([AT]), {})

    run(case, steps)


def test_the_wait_for_a_running_turn_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLE_S", 0.05)
    monkeypatch.setattr(module, "RETRY_FIRST_S", 0.2)
    case = Case(Broker(0))

    async def steps() -> None:
        await case.assigned()
        turn = asyncio.create_task(case.turns.take(records("1 a", "2 a", "999 b")))
        await asyncio.sleep(0.02)
        await case.turns.before_revoke()
        assert not turn.done()
        await turn

    run(case, steps)
