"""What answers where the API should be is something else, or means harm: an error, and at once."""

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.e2e.program import Capture, call

DEEP = b"[" * 100_000 + b"]" * 100_000

ANSWERS: dict[str, tuple[bytes, dict[str, str]]] = {
    "another program": (b'{"status": "success", "data": {}}', {}),
    "a page of HTML": (b"<html>", {}),
    "nothing": (b"", {}),
    "null": (b"null", {}),
    "a list": (b"[1]", {}),
    "rows of another form": (b'{"findings": [1], "incidents": [1], "next": null}', {}),
    "a number": (b'{"findings": 5, "incidents": 5, "next": null}', {}),
    "nesting": (DEEP, {}),
    "a bomb": (gzip.compress(b" " * 2**27), {"Content-Encoding": "gzip"}),
    "numbers without end": (b'{"findings": ' + b"9" * 5_000 + b"}", {}),
}


@contextmanager
def answering(body: bytes, headers: dict[str, str], status: int = 200) -> Iterator[str]:
    """Serve one answer to everything; give the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@pytest.mark.parametrize("command", ["findings", "incidents"])
@pytest.mark.parametrize("what", ANSWERS)
def test_what_is_no_api_is_an_error(capsys: Capture, what: str, command: str) -> None:
    with answering(*ANSWERS[what]) as url:
        code, out, err = call(capsys, command, "list", "--set", f"client.url={url}")
    assert (code, out) == (2, "")
    assert f"{url}: what answers there is no API of bleedwatch" in err


@pytest.mark.parametrize("command", ["findings", "incidents"])
def test_pages_without_end_end(capsys: Capture, command: str) -> None:
    page = json.dumps({"findings": [], "incidents": [], "next": "on"}).encode()
    with answering(page, {}) as url:
        code, _, _ = call(capsys, command, "list", "--set", f"client.url={url}")
    assert code == 0


@pytest.mark.parametrize("errors", [5, [5], [{}], {"field": 1}, "x"])
def test_a_refusal_of_another_form_is_told(capsys: Capture, errors: object) -> None:
    body = json.dumps({"detail": "no\x1b[2J", "errors": errors}).encode()
    with answering(body, {}, status=400) as url:
        code, _, err = call(capsys, "findings", "list", "--set", f"client.url={url}")
    assert code == 2
    assert "\x1b" not in err
