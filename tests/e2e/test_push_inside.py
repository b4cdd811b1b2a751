"""Without Kafka and without a sidecar: gateways push to `run all --listen`, as they do to one."""

import json
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from prometheus_client.parser import text_string_to_metric_families

from detector.sample.traffic import SampleRequest
from exporters.api_metrics import API
from exporters.metrics import WORKER
from exporters.sidecar_metrics import SIDECAR
from exporters.store.database import open_store
from exporters.store.request_rows import requests_named
from exporters.store.settings import DAY_MS, StoreSettings
from ingest.key_file import new_secret
from tests.e2e.program import PROGRAM, Capture, call, environment, replayed
from tests.e2e.test_listen import port_of
from tests.e2e.traffic import pairs, write_config, write_jsonl
from tests.streams.process import until

PAIRS: Final = 4
TOKEN: Final = "pushes-0123456789abcdef"


class Monitor:
    """A `run all --listen` and its port."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{port_of(process.stderr)}"

    def ask(self, path: str, body: Any = None, token: str = TOKEN) -> tuple[int, Any]:
        """Push, or ask; return status and answer."""
        request = urllib.request.Request(
            f"{self.url}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json", "authorization": f"Bearer {token}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def page(self, path: str) -> str:
        """Return a page that nobody needs a token for."""
        with urllib.request.urlopen(f"{self.url}{path}", timeout=20) as answer:
            body: bytes = answer.read()
        return body.decode()

    def end(self) -> list[dict[str, Any]]:
        """Stop it; return its findings."""
        self.process.send_signal(signal.SIGTERM)
        out, told = self.process.communicate(timeout=60)
        assert b"Traceback" not in told, told.decode()
        assert self.process.returncode == 143, told.decode()
        return [json.loads(line) for line in out.splitlines()]


class Place:
    """The files of one installation."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/store.db"
        self.token_file = folder / "token"
        self.token_file.write_text(TOKEN)
        self.token_file.chmod(0o600)
        new_secret(folder / "key")
        self._key = folder / "key"
        self.config = write_config(
            folder / "config.yaml",
            detection={"commonness": {"learning_ms": 0}},
            push={"token_file": str(self.token_file)},
            store={"url": self.url, "retention": {"requests_ms": 100 * 365 * DAY_MS}},
            api={"port": 0},
            # those of a sidecar beside an engine that reads the same file
            sidecar={"files": ["/nowhere/*.log"], "checkpoint_file": "/nowhere/checkpoint"},
        )

    @contextmanager
    def listening(self) -> Iterator[Monitor]:
        """Run the process."""
        words = ("run", "all", "--listen", "0", "--incidents", "-o", "jsonl")
        more = ("--config", self.config, "--key-file", self._key)
        with subprocess.Popen(
            [*PROGRAM, *map(str, (*words, *more))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        ) as process:
            try:
                yield Monitor(process)
            finally:
                process.kill()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def pushed(request: SampleRequest) -> dict[str, Any]:
    """Return a request as a gateway pushes it."""
    return {
        "request_id": request.request_id,
        "tenant": request.tenant,
        "engine": request.node,
        "model": request.model,
        "session": request.session,
        "started_at_ms": int(request.ts * 1000),
        "ended_at_ms": int(request.ts_end * 1000),
        "prompt_ids": list(request.prompt_ids),
        "response_ids": list(request.response_ids),
    }


def test_what_is_pushed_is_found_as_a_replay_finds_it(
    place: Place, tmp_path: Path, capsys: Capture
) -> None:
    requests = pairs(PAIRS)
    with place.listening() as monitor:
        assert monitor.ask("/readyz") == (200, {"ok": True, "reasons": []})
        for one in requests:
            status, answer = monitor.ask("/v1/sequences", {"requests": [pushed(one)]})
            assert (status, answer["accepted"]) == (202, 1)
        found = monitor.end()
    wanted = replayed(capsys, place.config, write_jsonl(tmp_path / "log.jsonl", requests))
    assert len(found) == PAIRS
    assert {one["id"] for one in found} == {one["id"] for one in wanted["findings"]}
    with (
        closing(open_store(StoreSettings(url=place.url))) as database,
        database.read() as connection,
    ):
        (row,) = requests_named(connection, str(requests[0].request_id), limit=2)
    assert row.prompt_tokens == len(requests[0].prompt_ids)


def test_samples_reach_the_rules_and_the_back_pressure_answer(place: Place) -> None:
    sample = {
        "engine": "e", "kv_pool": "p", "engine_kind": "sglang", "pool_tokens": 1000,
        "context_tokens": 4000, "used_tokens": 990, "pool_usage_ratio": 0.99,
    }  # fmt: skip
    with place.listening() as monitor:
        for second in range(0, 60, 5):
            body = {"samples": [{**sample, "sampled_at_ms": 1_780_000_000_000 + second * 1000}]}
            status, answer = monitor.ask("/v1/runtime", body)
            assert (status, answer["accepted"]) == (202, 1)
        status, answer = monitor.ask("/v1/backpressure")
        assert (status, answer["admit"]) == (503, False)
        found = monitor.end()
    assert "BW206" in {one["rule"] for one in found}


def test_the_metrics_of_all_parts_are_on_one_page(place: Place) -> None:
    with place.listening() as monitor:
        for one in pairs(PAIRS):
            monitor.ask("/v1/sequences", {"requests": [pushed(one)]})
        until(lambda: f"bleedwatch_push_requests_total {2 * PAIRS}.0" in monitor.page("/metrics"))
        until(lambda: 'bleedwatch_findings_total{confidence="high"' in monitor.page("/metrics"))
        recorded = f'bleedwatch_api_findings_total{{outcome="new"}} {PAIRS}.0'
        until(lambda: recorded in monitor.page("/metrics"))
        until(lambda: 'bleedwatch_incidents{state="' in monitor.page("/metrics"))
        page = monitor.page("/metrics")
        monitor.end()
    families = [one.name for one in text_string_to_metric_families(page)]
    assert len(families) == len(set(families))
    names = [*(w.name for w in WORKER), *(a.name for a in API), *(s.name for s in SIDECAR)]
    listed = {name.removesuffix("_total") for name in names}
    assert listed - set(families) == set()
    assert not [word for word in ("acme", "globex", "engine-0", "req-") if word in page]


def test_the_doctor_asks_what_takes_the_records_in_place_of_a_cluster(
    place: Place, capsys: Capture
) -> None:
    def checks(url: str) -> dict[str, str]:
        more = (f"http.url={url}", f"http.token_file={place.token_file}")
        words = [word for one in more for word in ("--set", one)]
        _, out, _ = call(capsys, "doctor", "--config", place.config, *words, "-o", "json")
        return {row["check"]: row["level"] for row in json.loads(out)}

    with place.listening() as monitor:
        found = checks(monitor.url)
        monitor.end()
    assert found["receiver"] == "ok"
    assert "kafka" not in found
    assert checks(monitor.url)["receiver"] == "error"


def test_who_may_not_push_and_what_is_wrong_is_told(place: Place) -> None:
    good = {"requests": [pushed(pairs(1)[0])]}
    nameless = pushed(pairs(1)[0]) | {"tenant": None}
    reserved = pushed(pairs(1)[0]) | {"tenant": "bleedwatch-heartbeat-sink"}
    with place.listening() as monitor:
        assert monitor.ask("/v1/sequences", good, token="canary")[0] == 401
        assert monitor.ask("/v1/sequences", {"requests": [{"tenant": "canary"}]})[0] == 400
        status, answer = monitor.ask("/v1/sequences", {"requests": [nameless]})
        assert (status, answer["accepted"], answer["unmapped"]) == (202, 0, 1)
        status, answer = monitor.ask("/v1/sequences", {"requests": [reserved]})
        assert (status, "canary" in str(answer)) == (422, False)
        assert answer["reasons"] == {"reserved_tenant": 1}
        assert monitor.end() == []
