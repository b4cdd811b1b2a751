"""Hostile pushes: every one gets an answer, none gets in, none is echoed, and the port lives on."""

import json
import random
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from tests.unit.pushes import JSON, Port, opened, request

MSGPACK = "application/msgpack"
CANARY = "canary-7f3a"


@pytest.fixture(scope="module")
def port() -> Iterator[Port]:
    with opened(max_body_bytes=2**21, reading_bytes=2**21, read_ms=300, connections=16) as port:
        yield port


@pytest.fixture(autouse=True)
def _still_works(port: Port) -> Iterator[None]:
    """Whatever came, nothing of it is inside, and the next push is taken."""
    yield
    assert port.intake.feed(0.0) == []
    until_s = time.monotonic() + 20
    while (status := port.push(request()).status) == 503 and time.monotonic() < until_s:
        time.sleep(0.05)  # connections of the test are still being let go of
    assert status == 202
    assert len(port.intake.feed(0.0)) == 2


def problem(port: Port, body: Any, **headers: str) -> dict[str, Any]:
    """Push something bad; return the problem that is told."""
    reply = port.send(body, **headers)
    assert 400 <= reply.status < 500, reply
    assert reply.headers["content-type"] == "application/problem+json"
    assert CANARY.encode() not in reply.body
    told: dict[str, Any] = reply.json
    assert told["status"] == reply.status
    assert told["type"].startswith("urn:bleedwatch:problem:")
    assert set(told) <= {"type", "title", "status", "detail", "reasons"}
    return told


def kind(told: dict[str, Any]) -> str:
    return str(told["type"]).rpartition(":")[2]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"null\0", b'{"requests": [', CANARY.encode(), b"NaN", b"\x00" * 100],
)
def test_what_is_no_json_is_undecodable(port: Port, body: bytes) -> None:
    assert kind(problem(port, body)) in {"undecodable", "wrong-type"}


@pytest.mark.parametrize(
    "change",
    [
        {"request_id": 7},
        {"request_id": ""},
        {"request_id": None},
        {"prompt_ids": "1,2,3"},
        {"prompt_ids": [1, 2.5]},
        {"prompt_ids": [1, None]},
        {"prompt_ids": {"0": 1}},
        {"response_ids": [[1]]},
        {"tenant": ["acme"]},
        {"tenant": "t" * 1_000_000},
        {"model": CANARY * 1_000},
        {"started_at_ms": "now"},
        {"started_at_ms": 2**62},
        {"status": -1},
        {"status": 2**64},
        {"reported_prompt_tokens": 1e308},
        {"identity": {f"field-{n}": "v" for n in range(65)}},
        {"identity": {"x" * 600: "v"}},
        {"gateway_cache_hit": CANARY},
    ],
    ids=lambda change: next(iter(change)),
)
def test_wrong_types_and_sizes_are_refused(port: Port, change: dict[str, Any]) -> None:
    told = problem(port, json.dumps({"requests": [request(**change)]}).encode())
    assert kind(told) == "wrong-type"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tenant": "ac\x00me"}, "bad_text"),
        ({"tenant": "ac\nme"}, "bad_text"),
        ({"tenant": "ac\u202eme"}, "bad_text"),
        ({"request_id": "\x1b[31m"}, "bad_text"),
        ({"model": "\u2028"}, "bad_text"),
        ({"prompt_ids": [-1]}, "token_id_range"),
        ({"prompt_ids": [2**31]}, "token_id_range"),
        ({"prompt_ids": [2**63 - 1]}, "token_id_range"),
        ({"response_ids": [1, 2, 2**64 - 1]}, "token_id_range"),
    ],
)
def test_what_the_door_refuses_is_counted_by_reason(
    port: Port, change: dict[str, Any], reason: str
) -> None:
    told = problem(port, json.dumps({"requests": [request(**change)]}).encode())
    assert (told["status"], told["reasons"]) == (422, {reason: 1})


def test_a_lone_surrogate_is_no_text(port: Port) -> None:
    body = json.dumps({"requests": [request()]}).replace("acme", "\\ud800").encode()
    assert problem(port, body)["status"] in {400, 422}


def test_bad_requests_cost_good_ones_nothing(port: Port) -> None:
    reply = port.push(request(tenant="\x00"), request(request_id="r-2"), request(prompt_ids=[-1]))
    assert reply.status == 202
    assert reply.json["accepted"] == 1
    assert reply.json["refused"] == {"bad_text": 1, "token_id_range": 1}
    assert len(port.intake.feed(0.0)) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1_000_000,
        b'{"requests":' + b'{"a":' * 200_000,
        b'{"requests":[{"unknown":' + b"[" * 500_000,
        b'{"requests":[' + b"{}," * 600_000 + b"{}]}",
        b'{"requests":[' + b"1," * 1_000_000 + b"1]}",
        json.dumps({"requests": [request()] * 1_001}).encode(),
    ],
    ids=["arrays", "objects", "unknown field", "empty requests", "numbers", "too many"],
)
def test_deep_and_wide_bodies_are_refused(port: Port, body: bytes) -> None:
    assert problem(port, body)["status"] in {400, 413}


@pytest.mark.parametrize(
    "body",
    [
        b"\x81\xa8requests\xdd\xff\xff\xff\xff",
        b"\x81\xa8requests\x91\x81\xaaprompt_ids\xdd\xff\xff\xff\xff\x01",
        b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\x91" * 1_000_000,
        b"\x81\xa8requests\x91\xc7\x04\x05abcd",
        b"\xc1",
    ],
    ids=["array", "ids", "map", "bytes", "deep", "extension", "unused"],
)
def test_messagepack_that_claims_more_than_it_has_is_refused(port: Port, body: bytes) -> None:
    assert problem(port, body, content_type=MSGPACK)["status"] == 400


def test_a_body_beyond_the_limit_is_refused_by_its_stated_length(port: Port) -> None:
    assert problem(port, b" " * (2**21 + 1))["status"] == 413


def test_a_body_beyond_the_limit_is_refused_without_a_length(port: Port) -> None:
    told = problem(port, iter([b" " * 2**16] * 64))
    assert told["status"] == 413


def test_compressed_bodies_are_not_read(port: Port) -> None:
    assert problem(port, b"\x1f\x8b", content_encoding="gzip")["status"] == 415


@pytest.mark.parametrize("given", ["text/plain", "", "application/x-www-form-urlencoded", "json"])
def test_a_web_page_cannot_push(port: Port, given: str) -> None:
    body = json.dumps({"requests": [request()]}).encode()
    assert problem(port, body, content_type=given)["status"] == 415


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/sequences", 405),
        ("POST", "/v1/backpressure", 405),
        ("GET", f"/{CANARY}", 404),
        ("GET", "/v1/../../etc/passwd", 404),
        ("DELETE", "/livez", 405),
    ],
)
def test_other_paths_and_methods_are_problems(
    port: Port, method: str, path: str, status: int
) -> None:
    reply = port.ask(method, path)
    assert reply.status == status
    assert reply.json["status"] == status
    assert CANARY.encode() not in reply.body


def test_a_client_that_stops_half_way_is_given_up(port: Port) -> None:
    head = b"POST /v1/sequences HTTP/1.1\r\nHost: x\r\nContent-Type: %b\r\n"
    head += b"Content-Length: 100\r\n\r\n{"
    with socket.create_connection(("127.0.0.1", port.server.port), timeout=20) as client:
        client.sendall(head % JSON.encode())
        assert b" 408 " in client.recv(100)


def test_connections_that_ask_for_nothing_more_make_room(port: Port) -> None:
    with ExitStack() as stack:
        held = []
        for _ in range(20):
            one = socket.create_connection(("127.0.0.1", port.server.port), 20)
            held.append(stack.enter_context(closing(one)))
            one.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            assert _status(one) == b"200"
        assert held[0].recv(1_000) == b""  # closed: it was silent for longest
        held[-1].sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert _status(held[-1]) == b"200"


def _status(client: socket.socket) -> bytes:
    """Read a whole answer, which may come in pieces; return its status."""
    answer = b""
    while not answer.endswith(b"}"):
        piece = client.recv(1_000)
        assert piece, answer
        answer += piece
    return answer.split(b" ", 2)[1]


def test_noise_is_no_request(port: Port) -> None:
    chance = random.Random(3)
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", port.server.port), timeout=20) as client:
            client.sendall(chance.randbytes(200) + b"\r\n\r\n")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
