"""Connections that never finish, against the port of probes: probes are answered all the while."""

import contextlib
import json
import socket
import threading
import time
import urllib.request

import pytest
from prometheus_client import CollectorRegistry

from exporters import health
from exporters.health import HealthServer
from exporters.settings import MetricsSettings

FLOOD = 400

ANSWER_SECONDS = 5.0
"""A kubelet waits for one second; this machine may be busy."""


def _probe(port: int) -> object:
    url = f"http://127.0.0.1:{port}/livez"
    with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as answer:
        return json.loads(answer.read())["ok"]


def _flood(port: int, stack: contextlib.ExitStack, count: int) -> list[socket.socket]:
    """Open connections that have said half of a request."""
    opened = []
    for _ in range(count):
        one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
        with contextlib.suppress(OSError):
            one.sendall(b"GET /livez HTTP/1.1\r\nX-Slow: ")
        opened.append(one)
    return opened


def _is_over(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def test_a_flood_of_half_requests_keeps_no_probe_out() -> None:
    before = threading.active_count()
    server = HealthServer(
        MetricsSettings(port=0), registry=CollectorRegistry(), probes={"/livez": list}
    )
    with contextlib.ExitStack() as stack, contextlib.closing(server):
        opened = _flood(server.port, stack, FLOOD)
        assert _probe(server.port) is True
        assert all(_is_over(one) for one in opened[: FLOOD - 2 * health.MOST_CONNECTIONS])
        until = time.monotonic() + ANSWER_SECONDS
        while threading.active_count() > before + health.MOST_CONNECTIONS + 2:
            assert time.monotonic() < until, "threads of ended connections end too"
            time.sleep(0.05)
        assert _probe(server.port) is True


def test_who_trickles_is_ended_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "CONNECTION_SECONDS", 0.5)
    server = HealthServer(
        MetricsSettings(port=0), registry=CollectorRegistry(), probes={"/livez": list}
    )
    with contextlib.ExitStack() as stack, contextlib.closing(server):
        (one,) = _flood(server.port, stack, 1)
        began = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - began < ANSWER_SECONDS:
                one.sendall(b"x")
                time.sleep(0.05)
        assert _is_over(one)
        assert time.monotonic() - began < ANSWER_SECONDS
        assert _probe(server.port) is True
