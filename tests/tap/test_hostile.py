"""Hostile clients and engines: what a tap holds is bounded, and others are served meanwhile."""

import json
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.tap.kit import TENANT, Tapped, eventually, tapped
from tests.tap.requests import CHAT, TEXT, body
from tests.tap.scripted import answer, scripted, stream

SECRET = "canary-7f3a"


@contextmanager
def client(tap: Tapped) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", tap.server.port), timeout=20) as made:
        yield made


def rest(connection: socket.socket) -> bytes:
    heard = bytearray()
    while piece := connection.recv(65_536):
        heard += piece
    return bytes(heard)


def test_a_body_beyond_the_bound_passes_unread() -> None:
    sent = json.dumps(body(CHAT, stream=False) | {"pad": "x" * 20_000})
    with (
        scripted(answer(b'{"choices":[],"prompt_token_ids":[1]}')) as engine,
        tapped(engine.url, max_body_bytes=4_096) as tap,
    ):
        through = httpx.post(tap.url + CHAT, content=sent, headers=TENANT)
        assert through.content == b'{"choices":[],"prompt_token_ids":[1]}'
        assert tap.blind == {"body_too_large": 1}
        assert tap.watch.room.taken == 0


def test_an_endless_body_is_held_to_the_bound_and_ends_with_its_client() -> None:
    def talk(connection: socket.socket, _: bytes) -> None:
        while connection.recv(1 << 20):
            pass

    with scripted(talk) as engine, tapped(engine.url, max_body_bytes=4_096) as tap:
        with client(tap) as connection:
            connection.sendall(
                f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
            )
            for _ in range(64):
                connection.sendall(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
            eventually(lambda: engine.heard)
            assert tap.watch.room.taken <= 4_096 + 65_536 * 2
        assert tap.blind == {"body_too_large": 1}
        assert tap.watch.room.taken == 0
        assert tap.traffic.cut == 1
        assert not tap.traffic.engine_errors


@pytest.mark.parametrize("waiting", [1, 4_000])
def test_all_bodies_together_are_bounded(waiting: int) -> None:
    """Requests beyond what all may hold pass unread; `waiting` bytes of another are held."""
    with (
        scripted(answer(b'{"choices":[]}')) as engine,
        tapped(engine.url, held_bytes=4_096 + waiting) as tap,
        client(tap) as slow,
    ):
        slow.sendall(
            f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n".encode()
            + b"x" * (4_096 + waiting - 10)
        )
        eventually(lambda: tap.watch.room.taken == 4_096 + waiting - 10)
        through = httpx.post(tap.url + CHAT, json=body(CHAT, stream=False), headers=TENANT)
        assert through.status_code == 200
        assert tap.watch.blind.counts() == {"memory": 1}


def test_an_answer_beyond_the_bound_passes_unread() -> None:
    told = json.dumps({"choices": [], "pad": "x" * 200_000}).encode()
    for talk in (answer(told), stream(b"data: " + told + b"\n\n")):
        with scripted(talk) as engine, tapped(engine.url, max_answer_bytes=4_096) as tap:
            through = httpx.post(tap.url + CHAT, json=body(CHAT, stream=False), headers=TENANT)
            assert told in through.content
            assert tap.blind == {"answer_too_large": 1}
            tap.records()
            assert tap.watch.room.taken == 0


def test_ids_beyond_the_bound_are_dropped_and_still_removed() -> None:
    choice = {"index": 0, "text": "", "token_ids": [1] * 50, "prompt_token_ids": [2]}
    told = json.dumps({"choices": [choice]}, separators=(",", ":")).encode()
    with scripted(answer(told)) as engine, tapped(engine.url, request_tokens=50) as tap:
        through = httpx.post(tap.url + TEXT, json=body(TEXT, stream=False), headers=TENANT)
        assert through.json()["choices"][0]["token_ids"] is None
        (row,) = tap.records()
        assert row.tenant == "acme"
        assert tap.blind == {"too_many_tokens": 1}
        assert tap.watch.room.taken == 0


def test_heads_are_bounded_in_size_and_time() -> None:
    with scripted(answer(b"{}")) as engine, tapped(engine.url, head_ms=300) as tap:
        with client(tap) as bomb:
            bomb.sendall(b"GET / HTTP/1.1\r\n" + b"X-A: " + b"b" * 100_000)
            assert b" 400 " in rest(bomb)
        with client(tap) as slow:
            slow.sendall(b"GET / HTTP/1.1\r\nX-A: ")
            assert rest(slow) == b""
        assert httpx.get(tap.url + "/health").status_code == 200
        assert len(engine.heard) == 1


@pytest.mark.parametrize(
    "head",
    [
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nabcde",
        "POST / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_requests_that_two_servers_could_read_differently_are_refused(head: str) -> None:
    with scripted(answer(b"{}")) as engine, tapped(engine.url) as tap:
        with client(tap) as odd:
            odd.sendall(head.encode())
            assert b" 400 " in rest(odd)
        assert engine.heard == []


def test_a_folded_header_reaches_the_engine_on_one_line() -> None:
    with scripted(answer(b"{}")) as engine, tapped(engine.url) as tap, client(tap) as odd:
        odd.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nA: b\r\n c: d\r\n\r\n")
        rest(odd)
        assert b"\r\na: b c: d\r\n" in engine.heard[0].lower()


def test_length_and_chunks_together_reach_the_engine_as_one_request() -> None:
    with scripted(answer(b"{}")) as engine, tapped(engine.url) as tap, client(tap) as odd:
        odd.sendall(
            b"POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n"
        )
        rest(odd)
        assert b"content-length" not in engine.heard[0].lower()
        assert not engine.heard[0].endswith(b"smuggled HTTP/1.1\r\n\r\n")


def test_headers_that_concern_one_connection_stay_there() -> None:
    with scripted(answer(b"{}", "Connection: close, X-Hop", "X-Hop: 1")) as engine:
        with tapped(engine.url) as tap:
            through = httpx.get(
                tap.url + "/x", headers={"connection": "keep-alive, x-mine", "x-mine": "1"}
            )
        assert "x-hop" not in through.headers
        assert b"x-mine" not in engine.heard[0].lower()


def test_a_slow_reader_holds_up_its_engine_and_not_the_tap() -> None:
    events = [b"data: {}\n\n" + b": " + b"x" * 65_536 + b"\n\n"] * 200
    with scripted(stream(*events)) as engine, tapped(engine.url) as tap, client(tap) as slow:
        asked = json.dumps(body(TEXT, stream=True)).encode()
        slow.sendall(
            f"POST {TEXT} HTTP/1.1\r\nHost: x\r\nX-Tenant-Id: acme\r\n"
            f"Content-Length: {len(asked)}\r\nConnection: close\r\n\r\n".encode()
            + asked
        )
        assert slow.recv(10)
        for _ in range(3):
            assert httpx.get(tap.url + "/health").status_code == 200
        assert tap.watch.room.taken < 200_000
        assert len(rest(slow)) > 200 * 65_536


def test_nothing_that_came_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told = f'{{"choices":"{SECRET}","usage":"{SECRET}","sglext":["{SECRET}"]}}'.encode()
    with scripted(answer(told)) as engine, tapped(engine.url) as tap:
        httpx.post(
            f"{tap.url}{CHAT}?a={SECRET}",
            content=json.dumps({"messages": SECRET, "model": SECRET}),
            headers={"x-tenant-id": SECRET, "authorization": f"Bearer {SECRET}"},
        )
        tap.records()
    ours = [one for one in caplog.records if one.name.split(".")[0] in ("ingest", "detector")]
    assert not any(SECRET in one.getMessage() for one in ours)
    assert not any(one.exc_info for one in ours)
