"""Of several processes on one store one sends; what it delivered the next one does not repeat."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from detector.alerting import announcer, new_sender, wall_ms
from detector.config.root import Settings
from exporters.incidents.model import Change
from exporters.sending.leadership import LEASE_MS, MARGIN_MS, RENEW_MS, Leadership
from exporters.sending.sender import Sender
from exporters.store import lease
from exporters.store.database import Database
from tests.alerts.kit import NOW_MS, change, keep
from tests.fakes.receiver import Receiver, receiver

PATIENCE_S = 60.0


def settings(to: Receiver) -> Settings:
    hook: dict[str, Any] = {
        "kind": "webhook",
        "name": "hook",
        "url": to.url,
        "allow_private": True,
        "most_per_minute": 10_000,
    }
    return Settings.model_validate({"outputs": [hook]})


def tell(database: Database, to: Receiver, *changes: Change) -> None:
    with database.write() as connection:
        keep(connection, changes)
        announcer(settings(to))(connection, changes)


@contextmanager
def sending(database: Database, to: Receiver, holder: str) -> Iterator[Sender]:
    sender = new_sender(settings(to), database, holder=holder)
    sender.start()
    try:
        yield sender
    finally:
        sender.stop()


def until(done: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < until_s, "it did not happen"
        time.sleep(0.005)


def changes(prefix: str, count: int) -> list[Change]:
    return [change(name=f"{prefix}-{number}", at_ms=wall_ms()) for number in range(count)]


def test_one_holds_the_lease_until_it_ends(database: Database) -> None:
    one, other = Leadership(database, "one"), Leadership(database, "other")
    assert not one.may_send(now_ms=NOW_MS)
    assert one.renew(now_ms=NOW_MS)
    assert not other.renew(now_ms=NOW_MS + 1)
    assert one.may_send(now_ms=NOW_MS + LEASE_MS - MARGIN_MS)
    assert not one.may_send(now_ms=NOW_MS + LEASE_MS - MARGIN_MS + 1)
    assert not other.renew(now_ms=NOW_MS + LEASE_MS - 1)
    assert other.renew(now_ms=NOW_MS + LEASE_MS)
    assert not one.renew(now_ms=NOW_MS + LEASE_MS + 1)
    assert not one.may_send(now_ms=NOW_MS)


def test_who_renews_in_time_keeps_it_and_can_send_all_the_while(database: Database) -> None:
    one, other = Leadership(database, "one"), Leadership(database, "other")
    one.renew(now_ms=NOW_MS)
    for turn in range(1, 10):
        now_ms = NOW_MS + turn * RENEW_MS
        assert one.may_send(now_ms=now_ms)
        assert not other.renew(now_ms=now_ms)
        assert one.renew(now_ms=now_ms)


def test_a_lease_that_was_let_go_is_free_at_once(database: Database) -> None:
    one, other = Leadership(database, "one"), Leadership(database, "other")
    one.renew(now_ms=NOW_MS)
    other.let_go()
    assert not other.renew(now_ms=NOW_MS)
    one.let_go()
    assert not one.may_send(now_ms=NOW_MS)
    assert other.renew(now_ms=NOW_MS)


def test_of_many_that_want_it_at_once_one_gets_it(database: Database) -> None:
    taken: list[str] = []
    start = threading.Barrier(6)

    def want(holder: str) -> None:
        start.wait()
        with database.write() as connection:
            if lease.take(connection, "sending", holder, now_ms=NOW_MS, until_ms=NOW_MS + 1):
                taken.append(holder)

    threads = [threading.Thread(target=want, args=(f"p{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1


def test_two_that_run_side_by_side_send_once_and_hand_over(database: Database) -> None:
    with receiver() as there:
        with sending(database, there, "one") as leader:
            until(lambda: _has_a_leader(database))
            first = changes("first", 8)
            with sending(database, there, "other"):
                tell(database, there, *first)
                leader.wake()
                until(lambda: len(there.calls) == len(first))
        with sending(database, there, "third") as third:  # the lease was let go of
            second = changes("second", 4)
            tell(database, there, *second)
            third.wake()
            until(lambda: len(there.calls) == len(first) + len(second))
            assert [(one.output, one.is_failing, one.is_gone) for one in third.states()] == [
                ("hook", False, False)
            ]
        ids = [call.id for call in there.calls]
        assert len(set(ids)) == len(ids) == 12


def test_nothing_is_sent_while_another_process_has_the_lease(database: Database) -> None:
    with receiver() as there:
        Leadership(database, "another").renew(now_ms=wall_ms() + 3_600_000)
        asked = 0

        def clock() -> int:
            nonlocal asked
            asked += 1
            return wall_ms()

        tell(database, there, *changes("waits", 3))
        sender = new_sender(settings(there), database, holder="one", now_ms=clock)
        sender.start()
        for turn in range(3):  # it looks whether it may, again and again
            sender.wake()
            until(lambda turn=turn: asked > 3 * turn)  # type: ignore[misc]
        sender.stop()
        assert there.calls == []


@pytest.mark.parametrize("turn", range(2))
def test_an_end_in_order_writes_down_what_was_sent(database: Database, turn: int) -> None:
    with receiver() as there:
        tell(database, there, *changes(f"turn-{turn}", 5))
        with sending(database, there, "one"):
            until(lambda: len(there.calls) > turn)
        with sending(database, there, "two"):
            until(lambda: len(there.calls) >= 5)
        ids = [call.id for call in there.calls]
        assert len(ids) == len(set(ids)) == 5


def _has_a_leader(database: Database) -> bool:
    with database.write() as connection:
        free = lease.take(connection, "sending", "probe", now_ms=wall_ms(), until_ms=0)
        if free:
            lease.let_go(connection, "sending", "probe")
    return not free
