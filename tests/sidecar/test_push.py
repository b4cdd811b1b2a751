"""Pushes to a sidecar as a process: what it took is on the broker, also when it is told to stop."""

import json
import re
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

from tests.sidecar.process import SidecarProcess, Site
from tests.streams.process import until
from tests.unit.engine_server import engine_server, vllm_page
from tests.unit.pushes import NOW_MS, request

PUSHES = 50
CANARY = 424_242
"""A token id that stands in every push and must stand nowhere else."""


def test_what_was_taken_arrives_though_the_sidecar_is_told_to_stop(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    site = Site(tmp_path, kafka, topic_prefix, log_format="sglang", push={"port": 0})
    said = tmp_path / "stderr"
    sidecar = SidecarProcess(site, said)
    try:
        sidecar.await_start()
        with closing(HTTPConnection("127.0.0.1", _push_port(said), timeout=30)) as connection:
            taken = [_push(connection, number) for number in range(PUSHES)]
            connection.request("GET", "/readyz")
            ready = connection.getresponse()
            assert (ready.status, b"is not there yet" in ready.read()) == (503, True)
        assert sidecar.stop() == 0
    finally:
        sidecar.kill()
    assert taken == [202] * PUSHES
    arrived = {(one.request_id, str(one.kind)) for one in site.sequences()}
    assert arrived == {
        (f"r-{number}", kind) for number in range(PUSHES) for kind in ("prompt", "response")
    }
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert str(CANARY).encode() not in path.read_bytes(), path


def test_a_scraped_engine_whose_pool_is_full_holds_gateways_back(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    said = tmp_path / "stderr"
    with engine_server(metrics=vllm_page(usage=0.95)) as server:
        scrape = {"targets": [{"url": server.url}], "interval_ms": 500}
        site = Site(
            tmp_path, kafka, topic_prefix, log_format="sglang", push={"port": 0}, scrape=scrape
        )
        sidecar = SidecarProcess(site, said)
        try:
            sidecar.await_start()
            port = _push_port(said)
            until(lambda: _status(port, "/v1/backpressure") == 503)
            assert sidecar.stop() == 0
        finally:
            sidecar.kill()


def _push_port(said: Path) -> int:
    until(lambda: re.search(r"pushes on port (\d+)", said.read_text()) is not None)
    found = re.search(r"pushes on port (\d+)", said.read_text())
    assert found is not None
    return int(found[1])


def _status(port: int, path: str) -> int:
    with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", path)
        return connection.getresponse().status


def _push(connection: HTTPConnection, number: int) -> int:
    ids = [number, CANARY, *range(30)]
    body = request(request_id=f"r-{number}", started_at_ms=NOW_MS + number, prompt_ids=ids)
    del body["ended_at_ms"]
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/v1/sequences", json.dumps({"requests": [body]}), headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status
