"""Connections that never finish the head of a request are closed, and make room for others."""

import socket
import time
from contextlib import suppress

from tests.unit.pushes import opened


def test_connections_without_a_whole_head_do_not_keep_others_out() -> None:
    with opened(read_ms=300, connections=4) as port:
        slow = [socket.create_connection(("127.0.0.1", port.server.port)) for _ in range(4)]
        try:
            for one in slow[2:]:  # some are silent, some drip
                one.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n")
            assert port.get("/livez").status == 503
            for _ in range(6):
                time.sleep(0.1)
                for one in slow[2:]:
                    with suppress(OSError):  # closed by now
                        one.sendall(b"A: b\r\n")
            assert port.get("/livez").status == 200
        finally:
            for one in slow:
                one.close()
