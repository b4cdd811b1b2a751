"""A service that answers drop by drop does not hold its lane, nor is told again meanwhile."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporters.outputs.apprise_output import AppriseOutput
from exporters.outputs.contract import Delivered, Retry
from exporters.outputs.settings import AppriseSettings
from tests.alerts.kit import NOW_MS, notification, secret_file

pytestmark = pytest.mark.filterwarnings(
    "ignore:'imghdr' is deprecated:DeprecationWarning"  # what some service of Apprise imports
)


class Dripping:
    """A server whose answers begin and go on until `enough` is set; counts its calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.enough = threading.Event()
        self.server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self.server.accept()
            except OSError:
                return
            self.calls += 1
            with caller:
                caller.recv(65_536)
                caller.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
                while not self.enough.wait(0.05):
                    caller.sendall(b"x")
                caller.shutdown(socket.SHUT_WR)
                while caller.recv(65_536):
                    pass  # what is closed unread is reset, and the answer lost


@pytest.fixture
def dripping() -> Iterator[Dripping]:
    there = Dripping()
    yield there
    there.enough.set()
    there.server.close()


def test_a_dripping_answer_is_given_up_and_asked_for_again(
    tmp_path: Path, dripping: Dripping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exporters.outputs.apprise_output.DEADLINE_S", 0.5)
    port = dripping.server.getsockname()[1]
    urls = secret_file(tmp_path, "urls", f"json://127.0.0.1:{port}/\n")
    output = AppriseOutput(AppriseSettings(kind="apprise", name="a", urls_file=urls))
    other = notification(id="ntf-other")
    began = time.monotonic()
    for told in (notification(), notification(), other):
        assert output.send(told, at_ms=NOW_MS) == Retry("no whole answer in time")
    assert time.monotonic() - began < 10
    assert dripping.calls == 1
    dripping.enough.set()
    monkeypatch.setattr("exporters.outputs.apprise_output.DEADLINE_S", 30.0)
    assert isinstance(output.send(notification(), at_ms=NOW_MS), Delivered), "of the first call"
    assert dripping.calls == 1
    assert output.send(other, at_ms=NOW_MS) == Delivered("taken")
    assert dripping.calls == 2
