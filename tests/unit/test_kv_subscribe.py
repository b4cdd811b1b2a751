"""KV events over real sockets: order, gaps that are filled by a replay, restarts, junk."""

import time
from collections.abc import Callable

import pytest
import zmq

from ingest.kv_events.frames import Frame
from ingest.kv_events.subscribe import REPLAY_S, Subscription
from tests.unit.kv_publisher import Publisher

WAIT_S = 20.0


def read(
    subscription: Subscription,
    count: int,
    *,
    now_s: float = 0.0,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[Frame]:
    """Poll until `count` messages are in."""
    frames: list[Frame] = []
    deadline = time.monotonic() + WAIT_S
    while len(frames) < count and time.monotonic() < deadline:
        frames += subscription.poll(now_s)
        meanwhile()
        time.sleep(0.002)
    return frames


def fresh(*payloads: bytes) -> list[Frame]:
    return [Frame(one) for one in payloads]


def test_messages_come_in_order_and_other_topics_do_not() -> None:
    with Publisher() as publisher, Subscription(publisher.endpoint, topic="kv") as subscription:
        publisher.wait_for_reader()
        assert subscription.poll(0.0) == []
        publisher.send(5, b"five")
        publisher.send_raw([b"other", (6).to_bytes(8, "big"), b"x"])
        publisher.send(6, b"six")
        assert read(subscription, 2) == fresh(b"five", b"six")
        assert subscription.counts == {"frames": 2}


def test_an_engine_that_connects_is_heard_too() -> None:
    free = zmq.Context()
    with free.socket(zmq.PUB) as socket:
        port = socket.bind_to_random_port("tcp://127.0.0.1")
    free.term()
    with (
        Subscription(f"tcp://*:{port}", topic="kv") as subscription,
        Publisher(at=f"tcp://127.0.0.1:{port}") as publisher,
    ):
        publisher.wait_for_reader(meanwhile=lambda: subscription.poll(0.0))
        publisher.send(0, b"zero")
        assert read(subscription, 1) == fresh(b"zero")


def test_missed_messages_are_asked_for_again() -> None:
    with (
        Publisher() as publisher,
        Subscription(
            publisher.endpoint, topic="kv", replay_endpoint=publisher.replay_endpoint
        ) as subscription,
    ):
        publisher.wait_for_reader()
        for number in range(8):
            publisher.send(number, b"%d" % number, dropped=number in (2, 3, 5))
        frames = read(subscription, 8, meanwhile=publisher.answer)
        assert frames == fresh(*(b"%d" % number for number in range(8)))
        assert publisher.asked == [2]  # what the replay brought beyond the gap closes the next
        publisher.send(8, b"8")
        assert read(subscription, 1) == fresh(b"8")
        counts = subscription.counts
        assert (counts["frames"], counts["gaps"], counts["lost"]) == (9, 1, 0)


def test_what_a_replay_no_longer_holds_is_lost_and_said_so() -> None:
    with (
        Publisher(buffered=2) as publisher,
        Subscription(
            publisher.endpoint, topic="kv", replay_endpoint=publisher.replay_endpoint
        ) as subscription,
    ):
        publisher.wait_for_reader()
        for number in range(6):
            publisher.send(number, b"%d" % number, dropped=number in (1, 2, 3, 4))
        frames = read(subscription, 3, meanwhile=publisher.answer)
        assert frames == [Frame(b"0"), Frame(b"4", is_after_loss=True), Frame(b"5")]
        assert subscription.counts["lost"] == 3


def test_without_a_replay_a_gap_is_a_loss() -> None:
    with Publisher() as publisher, Subscription(publisher.endpoint, topic="kv") as subscription:
        publisher.wait_for_reader()
        for number in (0, 4, 5):
            publisher.send(number, b"%d" % number)
        assert read(subscription, 3) == [Frame(b"0"), Frame(b"4", is_after_loss=True), Frame(b"5")]
        assert subscription.counts == {"frames": 3, "gaps": 1, "lost": 3}


def test_a_replay_that_does_not_answer_is_given_up_and_nothing_live_is_lost() -> None:
    with (
        Publisher() as publisher,
        Subscription(
            publisher.endpoint, topic="kv", replay_endpoint=publisher.replay_endpoint
        ) as subscription,
    ):
        publisher.wait_for_reader()
        publisher.send(0, b"0")
        assert read(subscription, 1) == fresh(b"0")
        publisher.send(2, b"2")
        publisher.send(3, b"3")
        deadline = time.monotonic() + WAIT_S
        while not subscription.counts["gaps"] and time.monotonic() < deadline:
            assert subscription.poll(1.0) == []
        assert subscription.poll(1.0 + REPLAY_S / 2) == []
        frames = read(subscription, 2, now_s=1.0 + 2 * REPLAY_S)
        assert frames == [Frame(b"2", is_after_loss=True), Frame(b"3")]
        assert subscription.counts["lost"] == 1


def test_a_restarted_engine_begins_anew() -> None:
    with Publisher() as publisher, Subscription(publisher.endpoint, topic="kv") as subscription:
        publisher.wait_for_reader()
        for number, payload in ((7, b"a"), (8, b"b"), (0, b"c"), (1, b"d")):
            publisher.send(number, payload)
        frames = read(subscription, 4)
        assert frames == [Frame(b"a"), Frame(b"b"), Frame(b"c", is_after_loss=True), Frame(b"d")]
        assert subscription.counts["restarts"] == 1


@pytest.mark.parametrize(
    "parts", [[b"kv"], [b"kv", b"x"], [b"kv", b"\x00" * 7, b"x"], [b"kv", b"", b"", b"\x00" * 9]]
)
def test_junk_is_counted_and_passed_over(parts: list[bytes]) -> None:
    with Publisher() as publisher, Subscription(publisher.endpoint, topic="kv") as subscription:
        publisher.wait_for_reader()
        publisher.send(0, b"0")
        publisher.send_raw(parts)
        publisher.send(1, b"1")
        assert read(subscription, 2) == fresh(b"0", b"1")
        assert subscription.counts["broken"] == 1


def test_an_endpoint_that_cannot_be_used_leaves_nothing_open() -> None:
    with pytest.raises(zmq.ZMQError):
        Subscription("tcp://no port")
