"""HTTP in place of Kafka: what a sidecar sends arrives in order, once, or is told to have not."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest

from detector.errors import BrokerError, RecordError, SettingsError
from ingest.broker import Message
from ingest.http_publisher import HttpPublisher
from ingest.http_settings import HttpSettings
from ingest.push.body import Bodies
from ingest.push.received import Received
from ingest.push.receiver import receiver
from ingest.push.server import PushServer
from ingest.push.settings import PushSettings
from ingest.spool import Spool
from ingest.spool_settings import SpoolSettings
from ingest.spooled_outlet import SpooledOutlet
from tests.unit.spools import TOPIC, message, number_of

TOKEN = b"0123456789abcdef"


class Station:
    """A receiver on a port, which can be closed and opened again."""

    def __init__(self, token: bytes | None, most_bytes: int, port: int = 0) -> None:
        self.received = Received({TOPIC}, most_bytes=most_bytes, most_message_bytes=2**20)
        self._settings = PushSettings(port=port)
        self._token = token
        self.open()
        self._settings = PushSettings(port=self.server.port)

    def open(self) -> None:
        bodies = Bodies(self._settings, self._token)
        app = receiver(self.received, bodies, not_live=list)
        self.server = PushServer(app, self._settings)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._settings.port}"

    def numbers(self) -> list[int]:
        """Take everything out."""
        found = self.received.follow(tick_s=0.0, stopped=lambda: True)
        return [number_of(one) for one in found if one is not None]


@contextmanager
def station(*, token: bytes | None = None, most_bytes: int = 2**26) -> Iterator[Station]:
    made = Station(token, most_bytes)
    try:
        yield made
    finally:
        made.server.close()


@contextmanager
def publisher(url: str, **settings: Any) -> Iterator[HttpPublisher]:
    made = HttpPublisher(HttpSettings(url=url, timeout_ms=5_000, **settings))
    try:
        yield made
    finally:
        made.close()


def test_messages_arrive_once_in_order() -> None:
    with station() as there, publisher(there.url) as here:
        given = [message(number, size=1_000 * (number % 50 + 1)) for number in range(300)]
        futures = [here.send(one) for one in given]
        here.flush(30)
        assert [future.result() for future in futures] == list(range(1, 301))
        found = islice(there.received.follow(tick_s=0.0, stopped=lambda: True), 300)
        assert list(found) == given


def test_a_receiver_that_is_behind_refuses_and_takes_it_later() -> None:
    with station(most_bytes=50_000) as there, publisher(there.url) as here:
        for number in range(100):
            with suppress(BrokerError):
                here.send(message(number)).result(30)
        taken = there.numbers()
        assert taken == list(range(len(taken)))
        assert 40 < len(taken) < 60
        with pytest.raises(BrokerError, match="messages were not acknowledged"):
            here.flush(30)
        here.send(message(7)).result(30)
        assert there.numbers() == [7]


def test_a_connection_that_was_let_go_is_made_again() -> None:
    with station() as there, publisher(there.url) as here:
        here.send(message(0)).result(30)
        there.server.close()
        there.open()
        here.send(message(1)).result(30)
        assert there.numbers() == [0, 1]


def test_the_spool_bridges_a_receiver_that_is_away(tmp_path: Path) -> None:
    with station() as there:
        settings = SpoolSettings(sync=False, after_ms=50)
        http = HttpSettings(url=there.url, timeout_ms=5_000)
        spool = Spool(str(tmp_path), settings)
        outlet = SpooledOutlet(lambda: HttpPublisher(http), spool, settings)
        for number in range(20):
            outlet.send(message(number))
        outlet.flush(30)
        there.server.close()
        for number in range(20, 200):
            outlet.send(message(number))
        outlet.flush(30)
        there.open()
        outlet.send(message(200)).result(30)
        while outlet.counts.messages:
            outlet.flush(30)
        outlet.close()
        found = there.numbers()
        assert sorted(set(found)) == list(range(201))
        assert list(dict.fromkeys(found)) == list(range(201))


def test_who_has_no_token_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(TOKEN)
    with station(token=TOKEN) as there:
        with publisher(there.url) as here, pytest.raises(BrokerError, match="bearer token"):
            here.send(message(0)).result(30)
        with publisher(there.url, token_file=str(path)) as here:
            here.send(message(1)).result(30)
        assert there.numbers() == [1]


def test_what_is_not_for_this_stream_is_refused() -> None:
    with station() as there, publisher(there.url) as here:
        with pytest.raises(BrokerError, match="topic that is not taken"):
            here.send(message(0, topic="other")).result(30)
        with pytest.raises(BrokerError, match="larger than"):
            here.send(message(0, size=2**20)).result(30)
        assert there.numbers() == []


@pytest.mark.parametrize(
    "given",
    [
        Message("other", b"v", b"k"),
        Message(TOPIC, None, b"k"),
        Message(TOPIC, b"v", None),
        Message(TOPIC, b"v" * 2**20, b"k"),
    ],
)
def test_all_or_nothing_is_taken(given: Message) -> None:
    received = Received({TOPIC}, most_bytes=2**20, most_message_bytes=2**20)
    with pytest.raises(RecordError):
        received.add([message(0), given])
    assert list(received.follow(tick_s=0.0, stopped=lambda: True)) == []


@pytest.mark.parametrize(
    "body", [b"", b"\xdd\xff\xff\xff\xff", b"\x91" * 1_000, msgspec.msgpack.encode({"a": 1})]
)
def test_a_body_that_is_no_list_of_messages_is_refused(body: bytes) -> None:
    with station() as there, publisher(there.url) as here:
        with pytest.raises(BrokerError, match="no list of messages"):
            here._ask("POST", "/v1/messages", body)
        assert there.numbers() == []


def test_nobody_there_is_said_at_once() -> None:
    with station() as there:
        url = there.url
    with pytest.raises(BrokerError, match="does not answer: connection refused"):
        HttpPublisher(HttpSettings(url=url))


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://a:b@x", "http://x/path", "x:1"])
def test_other_urls_are_no_receivers(url: str) -> None:
    with pytest.raises(ValueError, match="must"):
        HttpSettings(url=url)


def test_authorities_that_cannot_be_read_are_a_setting(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="authorities cannot be read"):
        HttpPublisher(HttpSettings(url="https://127.0.0.1:1", ca_file=str(tmp_path / "none")))
