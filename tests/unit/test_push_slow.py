"""Connections that never finish the head of a request make room for others, and are closed."""

import socket
import time
from contextlib import ExitStack, closing, suppress

from tests.unit.pushes import Port, opened

SLOW = 4
HEAD = b"GET /livez HTTP/1.1\r\nHost: x\r\n"


def slow(port: Port, stack: ExitStack) -> list[socket.socket]:
    """Connect as often as the port allows; some say nothing, some begin a head."""
    made = [socket.create_connection(("127.0.0.1", port.server.port), 20) for _ in range(SLOW)]
    for one in made:
        stack.enter_context(closing(one))
    for one in made[SLOW // 2 :]:
        one.sendall(HEAD)
    return made


def test_they_keep_nobody_out() -> None:
    with opened(read_ms=20_000, connections=SLOW) as port, ExitStack() as stack:
        slow(port, stack)
        assert [port.get("/livez").status for _ in range(3)] == [200] * 3


def test_who_comes_while_all_are_at_work_is_turned_away() -> None:
    begun = b"POST /v1/sequences HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    begun += b"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"
    with opened(read_ms=20_000, connections=SLOW) as port, ExitStack() as stack:
        for _ in range(SLOW - 1):
            busy = socket.create_connection(("127.0.0.1", port.server.port), 20)
            stack.enter_context(closing(busy))
            busy.sendall(begun)
            assert b" 100 " in busy.recv(100)
        assert port.get("/livez").status == 503


def test_they_are_closed_in_time_though_bytes_go_on_dripping() -> None:
    with opened(read_ms=300, connections=2 * SLOW) as port, ExitStack() as stack:
        made = slow(port, stack)
        until_s = time.monotonic() + 20
        for one in made:
            one.settimeout(0.1)
        left = list(made)
        while left and time.monotonic() < until_s:
            for one in list(left):
                with suppress(OSError):
                    if one in made[SLOW // 2 :]:
                        one.sendall(b"A: b\r\n")
                if _is_closed(one):
                    left.remove(one)
        assert left == []


def _is_closed(one: socket.socket) -> bool:
    try:
        return one.recv(100) == b""
    except TimeoutError:
        return False
    except OSError:
        return True
