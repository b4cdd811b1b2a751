"""The health server: status and body of each path, addresses that cannot be listened on."""

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter

from detector.errors import SettingsError
from exporters.health import HealthServer
from exporters.settings import MetricsSettings

SETTINGS = MetricsSettings(port=0)


class Reasons:
    """A probe whose answer a test sets."""

    def __init__(self) -> None:
        self.now: list[str] = []

    def __call__(self) -> list[str]:
        return self.now


@pytest.fixture
def ready() -> Reasons:
    return Reasons()


@pytest.fixture
def server(ready: Reasons) -> Iterator[HealthServer]:
    registry = CollectorRegistry()
    Counter("bleedwatch_things", "Things.", registry=registry).inc(3)
    health = HealthServer(
        SETTINGS, registry=registry, probes={"/livez": list, "/readyz": ready, "/broken": _broken}
    )
    yield health
    health.close()


def _broken() -> list[str]:
    raise RuntimeError("4711 is a token")


def get(server: HealthServer, path: str) -> tuple[int, str]:
    """Return status and body."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_probe_without_reasons_is_well(server: HealthServer) -> None:
    status, body = get(server, "/livez")
    assert status == 200
    assert json.loads(body) == {"ok": True, "reasons": []}


def test_readiness_says_why_not_and_recovers(server: HealthServer, ready: Reasons) -> None:
    ready.now = ["rebuilding the window of partition 3"]
    status, body = get(server, "/readyz?verbose")
    assert status == 503
    assert json.loads(body) == {"ok": False, "reasons": ready.now}
    ready.now = []
    assert get(server, "/readyz")[0] == 200


def test_metrics_are_served_as_prometheus_reads_them(server: HealthServer) -> None:
    status, body = get(server, "/metrics")
    assert status == 200
    assert "# TYPE bleedwatch_things_total counter" in body
    assert "bleedwatch_things_total 3.0" in body


def test_an_unknown_path_names_the_known_ones(server: HealthServer) -> None:
    status, body = get(server, "/health")
    assert status == 404
    assert "/livez, /readyz, /broken, /metrics" in body


def test_a_probe_that_breaks_is_not_well_and_quotes_nothing(server: HealthServer) -> None:
    status, body = get(server, "/broken")
    assert status == 503
    assert "RuntimeError" in body
    assert "4711" not in body


def test_a_silent_client_holds_up_nobody(server: HealthServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)):
        assert get(server, "/livez")[0] == 200


def test_a_client_that_goes_away_prints_nothing(
    server: HealthServer, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.sendall(b"GET /livez HTTP/1.1\r\n\r\n")
    assert get(server, "/livez")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_a_port_in_use_is_a_clear_error(server: HealthServer) -> None:
    taken = MetricsSettings(port=server.port)
    with pytest.raises(SettingsError, match=f"cannot listen on 127.0.0.1:{server.port}") as caught:
        HealthServer(taken, registry=CollectorRegistry(), probes={})
    assert caught.value.where == "metrics.port"
    assert "free port" in caught.value.hint


@pytest.mark.parametrize("host", ["203.0.113.9", "a..b", "a" * 70])
def test_an_address_of_another_machine_is_a_clear_error(host: str) -> None:
    with pytest.raises(SettingsError, match="cannot listen on"):
        HealthServer(MetricsSettings(host=host, port=0), registry=CollectorRegistry(), probes={})


def test_an_address_of_version_6_is_listened_on() -> None:
    health = HealthServer(
        MetricsSettings(host="::1", port=0), registry=CollectorRegistry(), probes={"/livez": list}
    )
    try:
        with urllib.request.urlopen(f"http://[::1]:{health.port}/livez", timeout=5) as answer:
            assert answer.status == 200
    finally:
        health.close()


def test_after_closing_the_port_is_free(server: HealthServer) -> None:
    again = MetricsSettings(port=server.port)
    server.close()
    HealthServer(again, registry=CollectorRegistry(), probes={}).close()


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/metrics", "application/openmetrics-text; version=canary"),
        ("/livez", "text/plain; version=1.x"),
        ("http://[canary/", "*/*"),
    ],
)
def test_what_cannot_be_read_is_answered_400_and_not_quoted(
    server: HealthServer, path: str, accept: str
) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as client:
        client.sendall(f"GET {path} HTTP/1.0\r\nAccept: {accept}\r\n\r\n".encode())
        said = b"".join(iter(lambda: client.recv(4096), b""))
    assert said.split(b"\r\n")[0].endswith(b" 400 Bad Request")
    assert b"canary" not in said
    assert get(server, "/metrics")[0] == 200
