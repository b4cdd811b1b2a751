"""Clients that connect and say nothing take no port from others, however many they are."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from exporters.http.server import CONNECTIONS
from tests.http.kit import served


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with served(tmp_path, api={}) as api:
        yield api.url


@pytest.mark.parametrize("begins", [b"", b"GET / HTTP/1.1\r\n"])
def test_who_asks_is_answered_beside_many_who_do_not(url: str, begins: bytes) -> None:
    at = urlsplit(url)
    with ExitStack() as stack:
        for _ in range(CONNECTIONS + 40):
            silent = socket.create_connection((at.hostname, at.port), timeout=10)
            stack.enter_context(closing(silent))
            silent.sendall(begins)
        assert [httpx.get(f"{url}/healthz").status_code for _ in range(3)] == [200] * 3


def test_a_client_that_is_kept_goes_on_while_others_come(url: str) -> None:
    at = urlsplit(url)
    with httpx.Client(base_url=url) as client, ExitStack() as stack:
        for _ in range(5):
            for _ in range(CONNECTIONS // 4):
                silent = socket.create_connection((at.hostname, at.port), timeout=10)
                stack.enter_context(closing(silent))
            assert client.get("/healthz").status_code == 200
