"""The gateways of docs/backpressure.md, as they stand there: a full pool stops admission."""

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.content.tree import ROOT
from tests.services.envoy import envoy
from tests.services.nginx import nginx
from tests.sidecar.process import SidecarProcess, Site
from tests.streams.process import until
from tests.unit.engine_server import EngineServer, engine_server, vllm_page

PAGE = ROOT / "docs" / "backpressure.md"
CALL = "/v1/completions"


@dataclass
class Pod:
    """An engine, the sidecar beside it, and where both are told of."""

    engine: EngineServer
    sidecar: SidecarProcess
    push: str

    def fill(self, usage: float) -> None:
        """Fill the engine's pool so far, and wait until the sidecar has seen it."""
        self.engine.pages["/metrics"] = vllm_page(usage=usage)
        until(lambda: _seen(self.push) == usage)


@pytest.fixture
def pod(kafka: str, topic_prefix: str, tmp_path: Path) -> Iterator[Pod]:
    said = tmp_path / "stderr"
    with engine_server(metrics=vllm_page(), v1__completions="{}") as engine:
        site = Site(
            tmp_path,
            kafka,
            topic_prefix,
            log_format="sglang",
            push={"port": 0},
            scrape={"targets": [{"url": engine.url}], "interval_ms": 500},
        )
        sidecar = SidecarProcess(site, said)
        with sidecar.killed_at_last():
            sidecar.await_start()
            until(lambda: re.search(r"pushes on port (\d+)", said.read_text()) is not None)
            found = re.search(r"pushes on port (\d+)", said.read_text())
            assert found is not None
            yield Pod(engine, sidecar, f"http://127.0.0.1:{found[1]}")


def test_envoy_sends_nothing_to_an_engine_whose_pool_is_full(pod: Pod, tmp_path: Path) -> None:
    with envoy(tmp_path, _clusters(pod)) as gateway:
        until(lambda: _asked(gateway).status == 200)
        _is_held_back_while_full(pod, gateway)
        pod.sidecar.kill()
        until(lambda: _asked(gateway).status == 503)


def test_nginx_asks_before_every_request_and_admits_without_a_sidecar(
    pod: Pod, tmp_path: Path
) -> None:
    with nginx(tmp_path, _locations(pod)) as gateway:
        assert _asked(gateway).status == 200
        _is_held_back_while_full(pod, gateway)
        pod.fill(0.95)
        assert _asked(gateway) == Answer(503, "1")
        pod.sidecar.kill()
        assert _asked(gateway).status == 200


def _is_held_back_while_full(pod: Pod, gateway: str) -> None:
    pod.fill(0.95)
    until(lambda: _asked(gateway).status == 503)
    before = pod.engine.asked.count(CALL)
    pod.fill(0.85)
    assert _asked(gateway).status == 503
    assert pod.engine.asked.count(CALL) == before
    pod.fill(0.5)
    until(lambda: _asked(gateway).status == 200)


@dataclass(frozen=True)
class Answer:
    """What a client sees."""

    status: int
    retry_after: str | None


def _asked(gateway: str, path: str = CALL) -> Answer:
    with _get(gateway, path) as answer:
        return Answer(answer.status, answer.headers["Retry-After"])


def _seen(push: str) -> float | None:
    with _get(push, "/v1/backpressure") as answer:
        pools = json.loads(answer.read())["pools"]
    return pools[0]["pool_usage_ratio"] if pools else None


@contextmanager
def _get(url: str, path: str) -> Iterator[Any]:
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=30)) as connection:
        connection.request("GET", path)
        yield connection.getresponse()


def _clusters(pod: Pod) -> list[dict[str, Any]]:
    """Return the clusters of the page, with our addresses."""
    clusters: list[dict[str, Any]] = yaml.safe_load(_block("yaml", "clusters:"))["clusters"]
    (locality,) = clusters[0]["load_assignment"]["endpoints"]
    (place,) = locality["lb_endpoints"]
    address = place["endpoint"]["address"]["socket_address"]
    assert address == {"address": "engine-0", "port_value": 8000}
    engine, push = urlsplit(pod.engine.url), urlsplit(pod.push)
    address.update(address=engine.hostname, port_value=engine.port)
    place["endpoint"]["health_check_config"]["port_value"] = push.port
    return clusters


def _locations(pod: Pod) -> str:
    """Return the locations of the page, with our addresses."""
    shown = _block("nginx", "location /v1/")
    for theirs, ours in (("engine-0:8000", pod.engine.url), ("127.0.0.1:9465", pod.push)):
        assert shown.count(f"http://{theirs}") == 1
        shown = shown.replace(f"http://{theirs}", ours)
    return shown


def _block(language: str, beginning: str) -> str:
    """Return the block of the page that begins so."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    (found,) = [block for block in blocks if block.startswith(beginning)]
    return str(found)
