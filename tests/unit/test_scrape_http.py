"""Hostile and broken endpoints: every request ends in time, in a bounded size, with a reason."""

import gzip
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from detector.errors import ScrapeError, SettingsError
from ingest.scrape.http import REASONS, Endpoint
from tests.kafka.security import Security
from tests.unit.engine_server import EngineServer, answer, engine_server

TIMEOUT_S = 0.5
IN_TIME_S = 10.0
"""Far above the time-out, for a machine under load; an endless answer would never end."""

MAX_BYTES = 100_000


@pytest.fixture
def server() -> Iterator[EngineServer]:
    with engine_server() as one:
        yield one


def endpoint(url: str, **more: str) -> Endpoint:
    return Endpoint(url, timeout_s=TIMEOUT_S, max_bytes=MAX_BYTES, **more)


def reason(url: str, path: str = "/metrics") -> str:
    """Return why a request fails; it must do so in time."""
    began = time.monotonic()
    with pytest.raises(ScrapeError) as caught:
        endpoint(url).get(path)
    assert time.monotonic() - began < IN_TIME_S
    assert caught.value.where == f"{url.removeprefix('http://')}{path}"
    assert caught.value.reason in REASONS
    return caught.value.reason


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"a 1\n" * 1_000)
    except OSError:
        return


def dripping(handler: BaseHTTPRequestHandler) -> None:
    """Send a byte well within every time-out of a socket, for ever."""
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"#")
            handler.wfile.flush()
            time.sleep(0.05)
    except OSError:
        return


def silent(_: BaseHTTPRequestHandler) -> None:
    time.sleep(TIMEOUT_S * 3)


def bomb(handler: BaseHTTPRequestHandler) -> None:
    answer(handler, 200, gzip.compress(b"a 1\n" * 5_000_000), Content_Encoding="gzip")


def cut_short(handler: BaseHTTPRequestHandler) -> None:
    answer(handler, 200, b"a 1\n", Content_Length="400")


def test_a_good_answer_is_whole(server: EngineServer) -> None:
    server.pages["/metrics"] = "a 1\n" * 20_000
    assert endpoint(server.url).get("/metrics").body == "a 1\n" * 20_000
    assert server.headers[0]["Accept-Encoding"] == "identity"
    assert "Authorization" not in server.headers[0]


def test_an_endless_answer_ends_at_the_limit(server: EngineServer) -> None:
    server.pages["/metrics"] = endless
    assert reason(server.url) == "too_large"


@pytest.mark.parametrize("slow", [dripping, silent])
def test_a_slow_answer_ends_in_time(server: EngineServer, slow: object) -> None:
    server.pages["/metrics"] = slow  # type: ignore[assignment]
    assert reason(server.url) == "timed_out"


def test_a_bomb_is_not_unpacked(server: EngineServer) -> None:
    server.pages["/metrics"] = bomb
    assert reason(server.url) == "encoded"


def test_binary_is_not_text(server: EngineServer) -> None:
    server.pages["/metrics"] = lambda handler: answer(handler, 200, bytes(range(256)))
    assert reason(server.url) == "not_text"


def test_half_an_answer_is_none(server: EngineServer) -> None:
    server.pages["/metrics"] = cut_short
    assert reason(server.url) == "malformed"


@pytest.mark.parametrize(
    ("status", "expected"),
    [(500, "status"), (503, "status"), (204, "status"), (401, "unauthorized"), (404, "not_found")],
)
def test_other_statuses_are_reasons(server: EngineServer, status: int, expected: str) -> None:
    server.pages["/metrics"] = lambda handler: answer(handler, status, b"")
    assert reason(server.url) == expected


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(server: EngineServer, status: int) -> None:
    server.pages["/metrics"] = lambda handler: answer(
        handler, status, b"", Location=f"{server.url}/elsewhere"
    )
    assert reason(server.url) == "redirected"
    assert server.asked == ["/metrics"]


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert reason(f"http://127.0.0.1:{taken.getsockname()[1]}") == "unreachable"


def test_another_protocol() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"SSH-2.0-Server of acme\r\n")
                connection.recv(4_096)

        thread = threading.Thread(target=greet)
        thread.start()
        assert reason(f"http://127.0.0.1:{listener.getsockname()[1]}") == "malformed"
        thread.join()


def test_a_token_is_sent_and_read_anew_each_time(server: EngineServer, tmp_path: Path) -> None:
    server.pages["/metrics"] = "a 1\n"
    file = tmp_path / "token"
    file.touch(0o600)
    asked = endpoint(server.url, token_file=str(file))
    for token in ("first-key", "second-key"):
        file.write_text(f"{token}\n")
        asked.get("/metrics")
        assert server.headers[-1]["Authorization"] == f"Bearer {token}"


@pytest.mark.parametrize(
    ("content", "mode"),
    [("", 0o600), ("two words", 0o600), ("s3cret\x07", 0o600), ("s3cret", 0o604), (None, 0o600)],
)
def test_a_bad_token_file_is_told_without_its_content(
    server: EngineServer, tmp_path: Path, content: str | None, mode: int
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
        file.chmod(mode)
    with pytest.raises(SettingsError) as caught:
        endpoint(server.url, token_file=str(file)).get("/metrics")
    assert "s3cret" not in str(caught.value)
    assert "two" not in str(caught.value)
    assert server.asked == []


class _Secure(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answer(self, 200, "a 1\n")

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class _Quiet(HTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a refused handshake is what is tried."""


def test_tls_is_checked_against_the_authority(kafka_security: Security) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(kafka_security.server_file)
    with _Quiet(("127.0.0.1", 0), _Secure) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        url = f"https://127.0.0.1:{server.server_address[1]}"
        try:
            known = endpoint(url, ca_file=str(kafka_security.ca_file))
            assert known.get("/metrics").body == "a 1\n"
            for others in ({}, {"ca_file": str(kafka_security.other_ca_file)}):
                with pytest.raises(ScrapeError) as caught:
                    endpoint(url, **others).get("/metrics")
                assert caught.value.reason == "tls"
        finally:
            server.shutdown()
            thread.join()


def test_an_authority_that_is_no_certificate(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("not PEM")
    with pytest.raises(SettingsError, match="authorities"):
        endpoint("https://127.0.0.1:1", ca_file=str(file))
