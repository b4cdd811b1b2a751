"""The spooled outlet: nothing is lost while the broker comes and goes, and order is kept."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from detector.errors import BrokerError, SettingsError
from ingest.broker import Message, Publisher, TopicPartition
from ingest.memory_io import MemoryBroker
from ingest.outlet import SPOOLED
from ingest.spool import Spool
from ingest.spool_settings import SpoolSettings
from ingest.spooled_outlet import SpooledOutlet
from tests.unit.sidecars import Gate
from tests.unit.spools import TOPIC, message, number_of, opened

WAIT_S = 30.0


class Yard:
    """A broker in memory that can be away in each of the ways a broker can, and outlets to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broker = MemoryBroker({TOPIC: 2})
        self.gates: list[Gate] = []
        self.is_up = True
        self.holds = False
        self.refuses = False

    def outlet(self, **settings: Any) -> SpooledOutlet:
        given = SpoolSettings(**{"sync": False, "after_ms": 50, **settings})
        return SpooledOutlet(self._connect, Spool(str(self.folder), given), given)

    def away(self) -> None:
        """No more connections; the one there is refuses."""
        self.is_up = False
        self.refuse()

    def refuse(self) -> None:
        self.refuses = True
        for gate in self.gates:
            gate.refuses = True

    def hold(self) -> None:
        """Nothing is acknowledged any more, and nothing fails."""
        self.holds = True
        for gate in self.gates:
            gate.is_open = False

    def back(self) -> None:
        self.is_up, self.holds, self.refuses = True, False, False
        for gate in self.gates:
            gate.is_open, gate.refuses = True, False
            gate.let_go()

    def numbers(self) -> list[int]:
        """Return what the broker has, in its order in each partition, one after the other."""
        reader = self.broker.reader()
        reader.assign({TopicPartition(TOPIC, number): 0 for number in range(2)})
        found: list[int] = []
        while records := reader.poll(0.0):
            found += [number_of(Message(one.topic, one.value)) for one in records]
        return found

    def by_key(self) -> dict[int, list[int]]:
        """Return what the broker has for each key."""
        found = self.numbers()
        return {key: [number for number in found if number % 3 == key] for key in range(3)}

    def _connect(self) -> Publisher:
        if not self.is_up:
            raise BrokerError("nothing listens there", where="yard", hint="wait")
        gate = Gate(self.broker.publisher())
        gate.is_open, gate.refuses = not self.holds, self.refuses
        self.gates.append(gate)
        return gate


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path / "spool")


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def sent(outlet: SpooledOutlet, numbers: range) -> list["Future[int]"]:
    """Send messages and wait until they are safe."""
    futures = [outlet.send(message(number)) for number in numbers]
    outlet.flush(WAIT_S)
    return futures


def expected(count: int) -> dict[int, list[int]]:
    return {key: list(range(key, count, 3)) for key in range(3)}


def test_nothing_touches_the_disk_while_the_broker_is_there(yard: Yard) -> None:
    outlet = yard.outlet(after_ms=10_000)
    until(lambda: bool(yard.gates))
    sent(outlet, range(1))
    until(lambda: outlet.counts.messages == 0)  # what it left in the spool goes first, in order
    futures = sent(outlet, range(1, 50))
    assert all(future.result() >= 0 for future in futures)
    assert outlet.problem is None
    outlet.close()
    assert yard.by_key() == expected(50)
    assert outlet.counts.spooled <= 1  # the first one may have come ahead of the connection


def test_a_broker_that_is_away_at_the_start_gets_everything_in_order(yard: Yard) -> None:
    yard.away()
    outlet = yard.outlet()
    futures = sent(outlet, range(100))
    assert {future.result() for future in futures} == {SPOOLED}
    until(lambda: outlet.problem is not None)
    assert "nothing listens" in str(outlet.problem)
    yard.back()
    until(lambda: outlet.counts.messages == 0)
    sent(outlet, range(100, 200))
    outlet.close()
    assert yard.by_key() == expected(200)
    assert outlet.problem is None


def test_a_broker_that_falls_silent_gets_nothing_twice(yard: Yard) -> None:
    """What it has and did not acknowledge is on disk, and is not sent again once it answers."""
    outlet = yard.outlet()
    sent(outlet, range(10))
    yard.hold()
    futures = sent(outlet, range(10, 60))
    assert {future.result() for future in futures} == {SPOOLED}
    until(lambda: outlet.problem is not None)
    assert "nothing was acknowledged" in str(outlet.problem)
    yard.back()
    until(lambda: outlet.counts.messages == 0)
    sent(outlet, range(60, 90))
    outlet.close()
    assert yard.by_key() == expected(90)


def test_a_broker_that_refuses_is_asked_again(yard: Yard) -> None:
    outlet = yard.outlet()
    sent(outlet, range(10))
    yard.away()
    sent(outlet, range(10, 60))
    until(lambda: outlet.problem is not None)
    yard.back()
    until(lambda: outlet.counts.messages == 0)
    outlet.close()
    assert yard.by_key() == expected(60)


def test_what_a_stopped_outlet_leaves_the_next_one_sends(yard: Yard) -> None:
    yard.away()
    outlet = yard.outlet()
    sent(outlet, range(50))
    outlet.close()
    assert yard.numbers() == []
    yard.back()
    outlet = yard.outlet()
    sent(outlet, range(50, 80))
    until(lambda: outlet.counts.messages == 0)
    outlet.close()
    assert yard.by_key() == expected(80)


def test_closing_spools_what_nobody_has_acknowledged(yard: Yard) -> None:
    yard.hold()
    outlet = yard.outlet(after_ms=60_000)
    until(lambda: bool(yard.gates))
    futures = [outlet.send(message(number)) for number in range(20)]
    outlet.close()
    assert {future.result(0) for future in futures} == {SPOOLED}
    spool = opened(yard.folder)
    assert spool.counts.messages == 20
    spool.close()


def test_what_does_not_fit_is_counted_and_the_rest_arrives(yard: Yard) -> None:
    yard.away()
    outlet = yard.outlet(max_bytes=2**16)
    sent(outlet, range(500))
    dropped = outlet.counts.dropped[TOPIC]
    yard.back()
    until(lambda: outlet.counts.messages == 0)
    outlet.close()
    assert 0 < dropped < 500
    assert outlet.counts.dropped == {TOPIC: dropped}
    assert sorted(yard.numbers()) == list(range(dropped, 500))


def test_a_full_spool_that_refuses_tells_the_sender(yard: Yard) -> None:
    yard.away()
    outlet = yard.outlet(max_bytes=2**16, when_full="refuse")
    futures = [outlet.send(message(number)) for number in range(500)]
    with pytest.raises(BrokerError, match="messages were refused"):
        outlet.flush(WAIT_S)
    refused = [number for number, one in enumerate(futures) if one.exception() is not None]
    yard.back()
    until(lambda: outlet.counts.messages == 0)
    sent_again = [outlet.send(message(number)) for number in refused]
    outlet.flush(WAIT_S)
    outlet.close()
    assert all(future.exception() is None for future in sent_again)
    assert 0 < len(refused) == outlet.counts.refused
    assert sorted(yard.numbers()) == list(range(500))


def test_what_is_refused_is_tried_again_and_nothing_behind_it(yard: Yard) -> None:
    """As when one of the topics is missing: the others get their messages once."""
    yard.away()
    outlet = yard.outlet()
    outlet.send(message(1_000, topic="missing"))
    sent(outlet, range(30))
    yard.back()
    until(lambda: "no such topic" in str(outlet.problem) and len(yard.gates) >= 3)
    assert outlet.counts.messages == 31
    outlet.close()
    assert sorted(yard.numbers()) == list(range(30))


def test_a_wrong_setting_is_told_to_whoever_sends(yard: Yard) -> None:
    def connect() -> Publisher:
        raise SettingsError("there is no such file", where="kafka.security.password_file")

    settings = SpoolSettings(sync=False)
    outlet = SpooledOutlet(connect, opened(yard.folder), settings)
    until(lambda: outlet.problem is not None)
    with pytest.raises(SettingsError, match="password_file"):
        outlet.send(message(0))
    outlet.close()


def test_a_closed_outlet_refuses(yard: Yard) -> None:
    outlet = yard.outlet()
    outlet.close()
    with pytest.raises(BrokerError, match="closed"):
        outlet.send(message(0)).result()
