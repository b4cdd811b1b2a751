"""Whatever answers in an engine's place, every command that asks says what, where and what next."""

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import Final

import pytest

from detector import engine_version
from detector.check import live
from detector.probe import asking
from tests.e2e.program import Capture, call
from tests.kafka.security import Security
from tests.services.ports import free_port
from tests.unit.engine_server import EngineServer, Respond, answer, endless, engine_server

COMMANDS: Final = {
    "check config": ("check", "config", "--url"),
    "check version": ("check", "version", "--engine", "vllm", "--url"),
    "checklist": ("checklist", "--url"),
}


class Everywhere(dict[str, str | Respond]):
    """Pages that are the same at every path."""

    def __init__(self, page: str | Respond) -> None:
        super().__init__()
        self._page = page

    def get(self, path: str, default: object = None) -> str | Respond:
        del path, default
        return self._page


def dripping(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    with suppress(OSError):
        while True:
            handler.wfile.write(b"#")
            time.sleep(0.02)


def status(code: int, **headers: str) -> Respond:
    return lambda handler: answer(handler, code, "{}", **headers)


FAULTS: Final[dict[str, tuple[str | Respond, str]]] = {
    "endless": (endless, "larger than"),
    "dripping": (dripping, "no whole answer in time"),
    "moved": (status(302, Location="http://192.0.2.1/"), "redirect"),
    "locked": (status(401), "status 401"),
    "broken": (status(500), "status 500"),
    "compressed": (status(200, Content_Encoding="gzip"), "compressed"),
    "no text": (lambda handler: answer(handler, 200, b"\xff\xfe\x00"), "not text"),
    "cut short": (status(200, Content_Length="99"), "cut short"),
    "a page": ("<html>hello</html>", ""),
    "nothing": (status(200, Content_Length="0"), ""),
}


@contextmanager
def serving(page: str | Respond) -> Iterator[EngineServer]:
    with engine_server() as server:
        server.pages = Everywhere(page)
        yield server


def refused(capsys: Capture, command: tuple[str, ...], url: str, *more: str) -> str:
    code, out, err = call(capsys, *command, url, *more)
    assert (code, out) == (2, ""), err
    assert "error: " in err
    assert url.partition("://")[2] in err
    assert "\n  next: " in err
    return err


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "TIMEOUT_MS", 500)
    monkeypatch.setattr(engine_version, "TIMEOUT_S", 0.5)
    monkeypatch.setattr(asking, "SETTLED_S", 0.5)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_bad_answers(capsys: Capture, command: str, fault: str) -> None:
    page, what = FAULTS[fault]
    with serving(page) as server:
        message = refused(capsys, COMMANDS[command], server.url)
    assert what in message


@pytest.fixture
def tls_server(kafka_security: Security) -> Iterator[str]:
    """Give the address of an engine whose certificate nobody here knows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(kafka_security.server_file)
    with engine_server(version='{"version": "0.33.0"}') as server:
        server.secure(context)
        yield server.url.replace("http:", "https:")


PROBE: Final = ("probe",)


@pytest.mark.parametrize("command", [*COMMANDS.values(), PROBE], ids=[*COMMANDS, "probe"])
def test_a_certificate_of_an_unknown_authority(
    capsys: Capture, tls_server: str, command: tuple[str, ...]
) -> None:
    message = refused(capsys, command, tls_server)
    assert "TLS" in message
    assert "--ca-file" in message or command == COMMANDS["check version"]


@pytest.mark.parametrize("command", [*COMMANDS.values(), PROBE], ids=[*COMMANDS, "probe"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_nobody_is_there(capsys: Capture, command: tuple[str, ...], scheme: str) -> None:
    assert "nothing answers" in refused(capsys, command, f"{scheme}://127.0.0.1:{free_port()}")
