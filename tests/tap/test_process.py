"""The program `run tap`: it starts, serves, tells how it is, and dies without a pod going dark."""

import re
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tests.content.tree import ROOT
from tests.fakes.http_engine import HttpEngine
from tests.services.nginx import nginx
from tests.tap.kit import TENANT, eventually
from tests.tap.process import TapProcess, tap_process
from tests.tap.requests import CHAT, body


def ask(url: str) -> httpx.Response:
    return httpx.post(url + CHAT, json=body(CHAT, stream=True), headers=TENANT, timeout=30)


def metric(tap: TapProcess, name: str) -> float:
    lines = httpx.get(tap.health + "/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def test_it_serves_tells_its_health_and_stops_in_order(
    engines: dict[str, HttpEngine], tmp_path: Path
) -> None:
    with tap_process(tmp_path, engines["vllm"].url) as tap:
        for _ in range(3):
            assert ask(tap.url).content.endswith(b"data: [DONE]\n\n")
        assert httpx.get(tap.health + "/livez").status_code == 200
        assert httpx.get(tap.health + "/readyz").status_code == 200
        eventually(lambda: metric(tap, "bleedwatch_tap_kept_total") == 3)
        eventually(lambda: metric(tap, "bleedwatch_spool_spooled_total") >= 1)
        assert metric(tap, "bleedwatch_tap_requests_total") == 3
        assert metric(tap, "bleedwatch_tap_blind_total") == 0
        assert httpx.get(tap.health + "/watchz").status_code == 503  # the receiver is away
        assert tap.stop() == 0
        assert "3 of 3 requests were sent" in tap.said.read_text()


def test_a_killed_tap_costs_those_in_flight_and_no_others(
    engines: dict[str, HttpEngine], tmp_path: Path
) -> None:
    """Clients fall back as a proxy with a second listener does: when nobody accepts."""
    direct = engines["vllm"].url
    outcomes: list[str] = []
    killed, over = threading.Event(), threading.Event()

    def load(url: str) -> None:
        while not over.is_set():
            began_after = killed.is_set()
            try:
                ask(url).raise_for_status()
                outcomes.append("through")
            except httpx.ConnectError:
                ask(direct).raise_for_status()
                outcomes.append("direct")
            except httpx.TransportError:
                outcomes.append("failed late" if began_after else "in flight")

    with tap_process(tmp_path, direct) as tap:
        threads = [threading.Thread(target=load, args=(tap.url,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        eventually(lambda: len(outcomes) >= 8)
        tap.kill()
        killed.set()
        eventually(lambda: outcomes.count("direct") >= 8)
        over.set()
        for thread in threads:
            thread.join()
    assert outcomes.count("in flight") <= len(threads)
    assert "failed late" not in outcomes
    assert "through" in outcomes


def test_nginx_goes_past_a_killed_tap(engines: dict[str, HttpEngine], tmp_path: Path) -> None:
    """As docs/tap.md shows it: who asks nginx does not notice, unless in flight."""
    direct = engines["vllm"].url
    outcomes: list[str] = []
    killed, over = threading.Event(), threading.Event()

    def load(gateway: str) -> None:
        while not over.is_set():
            began_after = killed.is_set()
            try:
                ask(gateway).raise_for_status()
                outcomes.append("after" if began_after else "before")
            except (httpx.TransportError, httpx.HTTPStatusError):
                outcomes.append("failed late" if began_after else "in flight")

    with tap_process(tmp_path, direct) as tap, _nginx(tmp_path, tap.url, direct) as gateway:
        threads = [threading.Thread(target=load, args=(gateway,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        eventually(lambda: metric(tap, "bleedwatch_tap_requests_total") >= 8)
        tap.kill()
        killed.set()
        eventually(lambda: outcomes.count("after") >= 8)
        over.set()
        for thread in threads:
            thread.join()
    assert outcomes.count("in flight") <= len(threads)
    assert "failed late" not in outcomes
    assert "before" in outcomes


def _nginx(folder: Path, tap: str, engine: str) -> AbstractContextManager[str]:
    """Run what the page shows, with our addresses."""
    page = (ROOT / "docs" / "tap.md").read_text()
    (shown,) = re.findall(r"^```\n# nginx\n(upstream .*)\n(location .*)\n```$", page, re.MULTILINE)
    upstream, location = shown
    for theirs, ours in (("10.0.0.7:8080", tap), ("10.0.0.7:8000", engine)):
        assert upstream.count(theirs) == 1
        upstream = upstream.replace(theirs, urlsplit(ours).netloc)
    return nginx(folder, location, around=upstream)
