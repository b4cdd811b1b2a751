"""What the chart starts comes up from its own configuration, and a bleed reaches the api."""

import secrets
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from detector.sample.sglang_writer import write_sglang_log
from ingest.key_file import new_secret
from tests.chart.local_pods import LocalPod, Secrets, answer, config_of, pod_of, sidecar_pod
from tests.chart.rendering import Manifest, render
from tests.e2e.program import Capture, call
from tests.e2e.traffic import Spoken, pairs
from tests.services.ports import free_port
from tests.streams.process import until
from tests.unit.engine_server import engine_server, sglang_page

READY_S: Final = 120.0
"""A worker that must compile its kernels takes a minute, on a machine that may be busy."""

TOKEN: Final = "reads-0123456789abcdef"

RULES: Final = {"rules": [{"kind": "header", "name": "x-tenant-id"}]}

SINGLE: Final = {
    "mode": "single",
    "secrets": [{"name": "ingest", "secretName": "bleedwatch-ingest"}],
    "config": {
        "tenancy": RULES,
        "http": {
            "url": "http://bleedwatch:9466",
            "token_file": "/etc/bleedwatch/secrets/ingest/token",
        },
        "push": {"token_file": "/etc/bleedwatch/secrets/ingest/token"},
    },
    "single": {"secrets": [{"name": "api", "secretName": "bleedwatch-api"}]},
}
"""The scenario of the chart without Kafka, with a tenant rule."""


@pytest.fixture
def held(tmp_path: Path) -> Secrets:
    """Return the Secrets that an operator makes."""
    new_secret(tmp_path / "new.key")
    return {
        "bleedwatch-key": {"key": (tmp_path / "new.key").read_text()},
        "bleedwatch-api": {"read": f"board {TOKEN}\n", "write": "ann writes-0123456789abcdef\n"},
        "bleedwatch-ingest": {"token": f"{secrets.token_hex(16)}\n"},
    }


class Site:
    """A release, the sidecar that goes with it, and the ports that they have here."""

    def __init__(
        self, objects: list[Manifest], patch: str, folder: Path, held: Secrets, **addresses: str
    ) -> None:
        self._objects = objects
        self._folder = folder
        self._held = held
        self._addresses = addresses
        self.metrics: dict[str, str] = {}
        self.api = f"http://127.0.0.1:{addresses['8080']}"
        self.sidecar = self._pod("sidecar", sidecar_pod(patch), kind="initContainers")

    def pod(self, component: str) -> LocalPod:
        """Return the one container of a component."""
        return self._pod(component, pod_of(self._objects, component))

    def _pod(self, name: str, pod: Manifest, kind: str = "containers") -> LocalPod:
        self.metrics[name] = port = str(free_port())
        return LocalPod(
            pod,
            pod[kind][0],
            self._folder / name,
            config=config_of(self._objects),
            secrets=self._held,
            addresses={**self._addresses, "9464": port},
        )

    def serve_a_bleed(self) -> None:
        """Write what an SGLang logs that gave one tenant's words to another, just now."""
        log = self._folder / "sidecar" / "logs" / "engine_0.log"
        tokenizer: Any = Spoken("words")
        write_sglang_log(log, pairs(3), epoch_s=time.time() - 20, tokenizer=tokenizer)

    def await_ready(self, name: str, process: "subprocess.Popen[bytes]", url: str = "") -> None:
        """Wait until a process says that it is ready."""
        url = url or f"http://127.0.0.1:{self.metrics[name]}"
        said = self._folder / name / "stderr"

        def is_ready() -> bool:
            assert process.poll() is None, said.read_text()
            status, why = answer(f"{url}/readyz")
            reasons.append(why)
            return status == 200

        reasons: list[Any] = []
        try:
            until(is_ready, READY_S)
        except AssertionError:
            raise AssertionError(
                f"{name} is not ready: {reasons[-1:]}, {said.read_text()}"
            ) from None

    def _told(self) -> list[Any]:
        status, body = answer(f"{self.api}/v1/findings", TOKEN)
        return list(body["findings"]) if status == 200 else []

    def await_finding(self) -> None:
        """Wait until the api tells the bleed, to nobody but who has a token."""
        until(lambda: self._told() != [], 60.0)
        (first, *_) = self._told()
        assert "acme" in str(first)
        assert "globex" in str(first)
        assert answer(f"{self.api}/v1/findings")[0] == 401


def _stop(process: "subprocess.Popen[bytes]") -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(60)


def _manifest(capture: Capture, *more: str) -> str:
    code, out, _ = call(capture, "sidecar", "manifest", "--engine-kind", "sglang", *more)
    assert code == 0
    return out


def test_workers_and_an_api_on_kafka(
    kafka: str, topic_prefix: str, tmp_path: Path, held: Secrets, capsys: Capture
) -> None:
    objects = render({"config": {"tenancy": RULES, "kafka": {"topic_prefix": topic_prefix}}})
    with engine_server(metrics=sglang_page(num_running_reqs=0)) as engine, ExitStack() as stack:
        addresses = {
            "kafka:9092": kafka,
            "8080": str(free_port()),
            "http://127.0.0.1:30000": engine.url,
        }
        site = Site(objects, _manifest(capsys), tmp_path, held, **addresses)
        worker, api = site.pod("worker"), site.pod("api")
        worker.prepare()  # makes the topics
        running = {
            name: stack.enter_context(pod.running())
            for name, pod in {"worker": worker, "api": api, "sidecar": site.sidecar}.items()
        }
        site.serve_a_bleed()  # until there is a log a sidecar is not ready
        for name, process in running.items():
            site.await_ready(name, process)
        site.await_finding()
        assert [_stop(process) for process in running.values()] == [0, 0, 0]


def test_one_process_without_kafka(tmp_path: Path, held: Secrets, capsys: Capture) -> None:
    with engine_server(metrics=sglang_page(num_running_reqs=0)) as engine, ExitStack() as stack:
        port = str(free_port())
        addresses = {
            "http://bleedwatch:9466": f"http://127.0.0.1:{port}",
            "9466": port,
            "8080": str(free_port()),
            "http://127.0.0.1:30000": engine.url,
        }
        patch = _manifest(capsys, "--secret", "ingest=bleedwatch-ingest")
        site = Site(render(SINGLE), patch, tmp_path, held, **addresses)
        everything = stack.enter_context(site.pod("single").running())
        site.await_ready("single", everything, f"http://127.0.0.1:{port}")
        site.serve_a_bleed()
        sidecar = stack.enter_context(site.sidecar.running())
        site.await_ready("sidecar", sidecar)
        site.await_finding()
        assert _stop(sidecar) == 0
        assert _stop(everything) == 128 + signal.SIGTERM
