"""Streams, endings, errors and other protocols pass through a tap as the engine meant them."""

import gzip
import json
import socket
import threading
from contextlib import suppress

import httpx
import pytest

from detector.model import Kind
from ingest.schema_records import RequestRow, SequenceRecord
from tests.tap.kit import TENANT, eventually, hashes, tapped
from tests.tap.requests import CHAT, TEXT, body
from tests.tap.scripted import answer, chunk, scripted, stream

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def event(ids: list[int] | None, *, text: str = "a", prompt: list[int] | None = None) -> bytes:
    choice = {"index": 0, "text": text, "token_ids": ids, "prompt_token_ids": prompt}
    told = {"id": "cmpl-1", "choices": [choice]}
    return b"data: " + json.dumps(told, separators=(",", ":")).encode() + b"\n\n"


def test_each_event_arrives_before_the_next_is_made() -> None:
    go_on = threading.Event()

    def talk(connection: socket.socket, _: bytes) -> None:
        connection.sendall(CHUNKED + chunk(event([1], prompt=[9])))
        go_on.wait(20)
        connection.sendall(chunk(event([2])) + b"0\r\n\r\n")

    with (
        scripted(talk) as engine,
        tapped(engine.url) as tap,
        httpx.stream(
            "POST", tap.url + TEXT, json=body(TEXT, stream=True), headers=TENANT
        ) as through,
    ):
        pieces = through.iter_raw()
        assert next(pieces) == event(None)
        go_on.set()
        assert b"".join(pieces) == event(None)
        assert {one.token_count for one in tap.records() if isinstance(one, SequenceRecord)} == {
            1,
            2,
        }


def test_a_client_that_leaves_ends_the_request_and_its_ids_are_kept() -> None:
    left = threading.Event()

    def talk(connection: socket.socket, _: bytes) -> None:
        connection.sendall(CHUNKED + chunk(event([1, 2], prompt=[9])))
        with suppress(OSError):
            connection.recv(1)
        left.set()

    with scripted(talk) as engine, tapped(engine.url) as tap:
        asked = body(TEXT, stream=True)
        with httpx.stream("POST", tap.url + TEXT, json=asked, headers=TENANT) as through:
            assert next(through.iter_raw()) == event(None)
        assert left.wait(20)
        (response,) = tap.sequences(Kind.RESPONSE)
        assert response.token_hashes == hashes([1, 2])
        assert response.finish_reason == "abort"
        assert tap.traffic.cut == 1


def test_a_client_that_leaves_ends_any_other_request_too() -> None:
    left = threading.Event()

    def talk(connection: socket.socket, _: bytes) -> None:
        connection.sendall(CHUNKED + chunk(b"data: tick\n\n"))
        with suppress(OSError):
            connection.recv(1)
        left.set()

    with scripted(talk) as engine, tapped(engine.url) as tap:
        with httpx.stream("GET", tap.url + "/ticks") as through:
            assert next(through.iter_raw()) == b"data: tick\n\n"
        assert left.wait(20)


def test_an_engine_that_breaks_off_breaks_off_for_the_client() -> None:
    with (
        scripted(stream(event([1], prompt=[9]), ends=False)) as engine,
        tapped(engine.url) as tap,
    ):
        asked = body(TEXT, stream=True)
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.post(tap.url + TEXT, json=asked, headers=TENANT)
        (response,) = tap.sequences(Kind.RESPONSE)
        assert response.token_hashes == hashes([1])
        assert tap.traffic.engine_errors == {"broken": 1}


def test_an_engine_that_is_away_is_a_bad_gateway() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with tapped(url) as tap:
        through = httpx.post(tap.url + CHAT, json=body(CHAT, stream=False), headers=TENANT)
        assert through.status_code == 502
        assert through.json()["error"]["code"] == 502
        assert tap.blind == {"no_answer": 1}
        assert tap.records() == []


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_errors_keep_status_body_and_headers(status: str) -> None:
    told = b'{"error": {"message": "wait"}}'
    with (
        scripted(answer(told, "Retry-After: 7", "X-Own: a", "X-Own: b", status=status)) as engine,
        tapped(engine.url) as tap,
    ):
        through = httpx.post(tap.url + CHAT, json=body(CHAT, stream=False), headers=TENANT)
        assert through.status_code == int(status[:3])
        assert through.content == told
        assert through.headers["retry-after"] == "7"
        assert through.headers.get_list("x-own") == ["a", "b"]
        (row,) = tap.records()
        assert isinstance(row, RequestRow)


def test_compressed_answers_pass_unread_and_plain_ones_are_asked_for() -> None:
    told = gzip.compress(b'{"choices":[]}')
    with (
        scripted(answer(told, "Content-Encoding: gzip")) as engine,
        tapped(engine.url) as tap,
        httpx.stream(
            "POST", tap.url + CHAT, json=body(CHAT, stream=False), headers=TENANT
        ) as through,
    ):
        assert b"".join(through.iter_raw()) == told
        assert tap.blind == {"compressed_answer": 1}
        assert b"accept-encoding: identity" in engine.heard[0]


def test_compressed_requests_pass_unread() -> None:
    sent = gzip.compress(json.dumps(body(CHAT, stream=False)).encode())
    with scripted(answer(b"{}")) as engine, tapped(engine.url) as tap:
        httpx.post(tap.url + CHAT, content=sent, headers=TENANT | {"content-encoding": "gzip"})
        assert tap.blind == {"compressed_request": 1}
        assert f"content-length: {len(sent)}".encode() in engine.heard[0].lower()


def test_what_is_no_json_passes_as_it_came() -> None:
    with scripted(answer(b"what?", status="422 No")) as engine, tapped(engine.url) as tap:
        through = httpx.post(tap.url + CHAT, content=b'{"a":NaN', headers=TENANT)
        assert (through.status_code, through.content) == (422, b"what?")
        assert engine.heard[0].endswith(b'{"a":NaN')
        assert tap.blind == {"not_json": 1}


def test_a_web_socket_passes_both_ways() -> None:
    def talk(connection: socket.socket, head: bytes) -> None:
        assert b"upgrade: websocket" in head.lower()
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")
        while heard := connection.recv(100):
            connection.sendall(heard.upper())

    with scripted(talk) as engine, tapped(engine.url) as tap:
        host = ("127.0.0.1", tap.server.port)
        with socket.create_connection(host, timeout=20) as client:
            client.sendall(
                b"GET /v1/realtime?a=b HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
                b"Upgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n"
            )
            assert client.recv(1_000).startswith(b"HTTP/1.1 101")
            client.sendall(b"\x81\x03abc")
            assert client.recv(100) == b"\x81\x03ABC"
        eventually(lambda: tap.traffic.upgraded == 1)
        assert engine.heard[0].startswith(b"GET /v1/realtime?a=b HTTP/1.1")


def test_a_web_socket_to_an_engine_that_is_away_just_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with tapped(url) as tap:
        host = ("127.0.0.1", tap.server.port)
        with socket.create_connection(host, timeout=20) as client:
            client.sendall(
                b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
            )
            assert client.recv(100) == b""
        assert tap.traffic.engine_errors == {"unreachable": 1}
