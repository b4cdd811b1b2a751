"""Whatever step of the watching fails or hangs, clients are served as before, and it is counted."""

import re
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from detector.config.load import load_settings
from detector.config.root import Settings
from detector.errors import BrokerError, SettingsError
from detector.tap import Tap, serving
from ingest.broker import Message
from ingest.key_file import new_secret
from ingest.outlet import Outlet
from ingest.schema_records import SequenceRecord
from ingest.spool import Spool
from ingest.spool_settings import SpoolSettings
from ingest.spooled_outlet import SpooledOutlet
from tests.fakes.http_engine import HttpEngine
from tests.tap.kit import TENANT, eventually, tapped
from tests.tap.requests import CHAT, body
from tests.tap.test_relay import plain

STEPS = (
    "ingest.tap.watch.Client",
    "ingest.tap.watch.Tenancy.tenant",
    "ingest.tap.watch.Exchange",
    "ingest.tap.question.Client.question",
    "ingest.tap.rewriting.read",
    "ingest.tap.exchange.Exchange.take",
    "ingest.tap.finished.Finished.put",
    "ingest.tap.exchange.Exchange.requests",
    "ingest.door.Door.sequences",
    "ingest.tap.finished.to_record",
)
"""Every step from a request to a record; each is made to raise what nobody expects."""

ID_LISTS = re.compile(rb',"(?:prompt_)?token_ids":\[[0-9,]*\]')


class NobodyExpectsError(Exception):
    """A defect of ours."""


def fail(*_: Any, **__: Any) -> Any:
    raise NobodyExpectsError("canary-7f3a")


@pytest.mark.parametrize(
    ("step", "stream"), [(step, bool(number % 2)) for number, step in enumerate(STEPS)]
)
def test_a_fault_in_any_step_is_counted_and_changes_no_answer(
    engines: dict[str, HttpEngine],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    step: str,
    *,
    stream: bool,
) -> None:
    direct = httpx.post(engines["vllm"].url + CHAT, json=body(CHAT, stream=stream))
    with tapped(engines["vllm"].url) as tap:
        monkeypatch.setattr(step, fail)
        through = httpx.post(tap.url + CHAT, json=body(CHAT, stream=stream), headers=TENANT)
        assert through.status_code == 200
        assert ID_LISTS.sub(b"", plain(through)) == plain(direct)
        assert not any(isinstance(one, SequenceRecord) for one in tap.records())
        assert tap.blind == {"fault": 1}
        assert tap.watch.room.taken == 0
        monkeypatch.undo()
        httpx.post(tap.url + CHAT, json=body(CHAT, stream=stream), headers=TENANT)
        assert len(tap.records()) == 2
    assert "canary" not in caplog.text


def test_requests_beyond_what_may_wait_are_dropped_and_counted(
    engines: dict[str, HttpEngine],
) -> None:
    with tapped(engines["vllm"].url, waiting_bytes=3_000) as tap:
        tap.hold = True
        for _ in range(3):
            answer = httpx.post(tap.url + CHAT, json=body(CHAT, stream=False), headers=TENANT)
            assert answer.status_code == 200
        assert tap.blind == {"waiting": 2}
        assert tap.records() == []
        tap.hold = False
        assert len(tap.records()) == 2
        assert tap.watch.finished.waiting_bytes == 0
        assert tap.watch.room.taken == 0


class Away:
    """A broker that nobody reaches: it refuses, raises or never answers, as told."""

    def __init__(self, way: str, release: threading.Event) -> None:
        self._way = way
        self._release = release
        self.asked = threading.Event()

    def send(self, message: Message) -> "Future[int]":
        assert message.value
        self.asked.set()
        if self._way == "hangs":
            self._release.wait(30)
        if self._way == "raises":
            raise NobodyExpectsError
        if self._way == "is set up wrongly":
            raise SettingsError("no such topic")
        future: Future[int] = Future()
        if self._way == "refuses":
            future.set_exception(BrokerError("away"))
        return future

    def flush(self, timeout_s: float) -> None:
        raise BrokerError(f"nothing was acknowledged in {timeout_s} s")

    def close(self) -> None:
        """Let go of nothing."""


@pytest.fixture
def settings(engines: dict[str, HttpEngine], tmp_path: Path) -> Settings:
    new_secret(tmp_path / "key")
    assignments = [
        f"tap.engine_url={engines['vllm'].url}",
        "tap.port=0",
        "tap.waiting_bytes=10000",
        "tap.drain_ms=1000",
        "sidecar.grace_ms=0",
        "packing.linger_ms=1",
        'tenancy.rules=[{"kind":"header","name":"x-tenant-id"}]',
    ]
    loaded = load_settings(None, assignments=assignments, key_file=str(tmp_path / "key"))
    return loaded.settings


@contextmanager
def sending(tap: Tap, outlet: Outlet) -> Iterator[None]:
    """Send for the time of a block, through an outlet that may fail."""
    thread = threading.Thread(target=tap.send_on, args=(lambda: outlet,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        tap.end()


def served(tap: Tap) -> bool:
    """Ask once; tell whether the answer is as it should be."""
    answer = httpx.post(
        f"http://127.0.0.1:{tap.server.port}{CHAT}", json=body(CHAT, stream=True), headers=TENANT
    )
    return answer.status_code == 200 and answer.content.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("way", ["hangs", "raises", "is set up wrongly", "refuses", "is silent"])
def test_a_broker_that_is_away_costs_no_client_anything(settings: Settings, way: str) -> None:
    release = threading.Event()
    away = Away(way, release)
    with serving(settings) as tap, sending(tap, away):
        assert served(tap)
        eventually(away.asked.is_set)
        if way in ("raises", "is set up wrongly"):
            eventually(lambda: tap.restarts)
            assert tap.not_watching()
        for _ in range(6):
            assert served(tap)
        assert tap.server.not_live() == []
        assert tap.server.not_ready() == []
        if way == "hangs":
            eventually(lambda: tap.watch.blind.counts().get("waiting"))
        if way == "raises":
            assert tap.watch.blind.counts()["fault"] >= 1
        release.set()


def test_a_spool_that_is_full_costs_no_client_anything(settings: Settings, tmp_path: Path) -> None:
    tiny = SpoolSettings(folder=str(tmp_path / "spool"), max_bytes=2**16, when_full="refuse")

    def nobody() -> Any:
        raise BrokerError("away")

    spool = Spool(str(tmp_path / "spool"), tiny)
    message = Message("topic", b"x" * 1_000, key=b"key")
    while spool.counts.bytes + 1_500 < tiny.max_bytes:
        spool.append(message)
    with serving(settings) as tap, sending(tap, SpooledOutlet(nobody, spool, tiny)):
        for _ in range(5):
            assert served(tap)
        eventually(lambda: tap.running and tap.running.sidecar.sending.failed_sends)
        assert served(tap)
        assert tap.not_watching()


def test_without_an_engine_or_a_key_a_tap_does_not_start(settings: Settings) -> None:
    without = settings.model_copy(
        update={"tap": settings.tap.model_copy(update={"engine_url": None})}
    )
    with pytest.raises(SettingsError, match=r"tap\.engine_url"), serving(without):
        pass
    with (
        pytest.raises(SettingsError, match="key_file"),
        serving(settings.model_copy(update={"key_file": None})),
    ):
        pass
