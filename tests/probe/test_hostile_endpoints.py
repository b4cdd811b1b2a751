"""Endpoints that are hung, hostile or something else end with what, where and what next."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread
from typing import Any, Final

import pytest

from detector.check.verdict import Verdict
from detector.errors import BleedwatchError, BudgetError, InputError
from detector.probe import asking
from detector.probe.asking import Access, Asker
from detector.probe.budget import Budget
from detector.probe.dialects import Question, openai
from detector.probe.probing import Given, probe

HELLO: Final = {"choices": [{"text": "", "token_ids": [1]}], "usage": {"prompt_tokens": 16}}


@contextmanager
def endpoint(
    body: bytes = b"{}", *, status: int = 200, drips: bool = False, drips_after: int = 0
) -> Iterator[str]:
    """Answer every POST alike; one that drips sends a byte at a time, for ever.

    `drips_after` so many that are answered whole.
    """
    answered = count()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Location", "http://192.0.2.1/")
            self.end_headers()
            while drips and next(answered) >= drips_after:
                try:
                    self.wfile.write(b" " * (len(body) or 1))
                    time.sleep(0.01)
                except OSError:
                    return
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("status", "body", "what", "hint"),
    [
        (401, b"{}", "status 401", "--token-file"),
        (404, b"{}", "status 404", "--api"),
        (302, b"{}", "status 302", "an engine runs there"),
        (500, b"{}", "status 500", "an engine runs there"),
        (200, b"<html>hello</html>", "not that of an engine", "an engine runs there"),
        (200, b"[" * 100_000, "not that of an engine", "an engine runs there"),
    ],
)
def test_what_is_no_engine_is_an_error(status: int, body: bytes, what: str, hint: str) -> None:
    with endpoint(body, status=status) as url, pytest.raises(InputError, match=what) as raised:
        probe(Given(url=url))
    assert hint in raised.value.hint
    assert raised.value.where in url


def test_an_answer_without_an_end_is_late() -> None:
    with endpoint(b"x", drips=True) as url:
        asker = Asker(Access(url), openai("m"), Budget(requests=1, seconds=60.0))
        heard = asker.ask(Question(prompt=[1], max_tokens=1), 0, patience_s=0.3)
    assert heard.told == "neither answered nor refused: no whole answer in time"


def test_an_engine_that_drips_is_given_up_long_before_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It answers the first two prompts, and the others drop by drop."""
    monkeypatch.setattr(asking, "SETTLED_S", 0.5)
    monkeypatch.setattr(asking, "ANSWER_TOKENS_PER_S", 1_000)
    began_s = time.monotonic()
    with endpoint(json.dumps(HELLO).encode(), drips=True, drips_after=2) as url:
        found = probe(Given(url=url, settle_s=0.1))
    assert time.monotonic() - began_s < 15
    assert not found.record.passed
    assert found.record.requests < 30
    told = {one.check: one.said for one in found.results}
    assert told["canary-concurrent"].verdict is Verdict.UNKNOWN
    assert told["canary-concurrent"].found == (
        "2 answers in a row did not come in time, so no more is asked"
    )
    assert "look at its log" in told["canary-concurrent"].next_step


def test_patience_follows_from_what_is_asked_and_a_time_out_of_ones_own_is_not_late() -> None:
    with endpoint(b"x", drips=True) as url:
        asker = Asker(Access(url, patience_s=0.2), openai("m"), Budget(requests=9, seconds=60.0))
        asked = Question(prompt=[1], max_tokens=1)
        for _ in range(3):
            assert asker.ask(asked, 0, patience_s=0.1).lost == asking.LATE
        for _ in range(asking.MAX_LATE):
            assert asker.ask(asked, 0).lost == asking.LATE
        with pytest.raises(BudgetError, match="2 answers in a row"):
            asker.ask(asked, 0)


def test_an_answer_that_is_too_large_is_given_up() -> None:
    with endpoint(b"x" * 2**20, drips=True) as url:
        asker = Asker(Access(url), openai("m"), Budget(requests=1, seconds=60.0))
        heard = asker.ask(Question(prompt=[1], max_tokens=1), 0)
    assert heard.lost == "an answer without an end"


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("http://127.0.0.1:9", "nothing answers there"),
        ("http://probe.invalid:80", "this name has no address"),
        ("ftp://127.0.0.1", "no address of an endpoint"),
        ("http://user:s3cret@127.0.0.1:80", "no address of an endpoint"),
    ],
)
def test_addresses_that_lead_nowhere(url: str, what: str) -> None:
    with pytest.raises(BleedwatchError, match=what) as raised:
        probe(Given(url=url))
    assert raised.value.hint
    assert "s3cret" not in str(raised.value)


def test_a_port_without_tls_is_told() -> None:
    with endpoint() as url, pytest.raises(InputError, match="TLS is not trusted"):
        probe(Given(url=url.replace("http:", "https:")))


def test_an_endpoint_that_tells_nothing_of_itself_does_not_pass() -> None:
    with endpoint(json.dumps(HELLO).encode()) as url:
        found = probe(Given(url=url, settle_s=0.1))
    verdicts = {one.check: one.said.verdict for one in found.results}
    assert verdicts["boundary"] is Verdict.UNKNOWN
    assert verdicts["salts"] is Verdict.UNKNOWN
    assert verdicts["release-after-abort"] is Verdict.UNKNOWN
    assert not found.record.passed
