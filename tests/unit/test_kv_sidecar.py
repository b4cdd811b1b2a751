"""A sidecar beside an engine that publishes KV events and logs: both become engine events."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from detector.errors import SettingsError
from detector.kv_events import kv_event_feeds
from detector.sidecar import HashKeys
from detector.signals import signals_of
from ingest.kv_events.settings import KvEventSettings, KvEventSource
from ingest.opening import open_records
from ingest.schema_records import EngineEvent, EventKind
from ingest.tenancy import FieldRule, TenancySettings
from tests.unit.kv_publisher import Publisher, batch, stored
from tests.unit.sidecars import Station

TENANCY = TenancySettings(rules=(FieldRule(name="session_id"), FieldRule(name="cache_salt")))
LINE = "[2026-11-29 17:54:42] Cache not flushed because there are pending requests. #queue-req: 0\n"


def station_of(folder: Path, publisher: Publisher, **given: bool) -> Station:
    log = folder / "server.log"
    log.write_text(LINE)
    station = Station(folder, str(log))
    source = KvEventSource(
        endpoint=publisher.endpoint,
        replay_endpoint=publisher.replay_endpoint,
        topic="kv",
        engine="engine-0",
    )
    station.settings = station.settings.model_copy(
        update={"kv_events": KvEventSettings(sources=(source,), **given), "tenancy": TENANCY}
    )
    return station


def events(station: Station) -> list[EngineEvent]:
    return [
        one
        for message in station.messages(station.topics.engine_events)
        for one in open_records(EngineEvent, message).records
    ]


def store(block: int, tenant: str, parent: int | None = None) -> bytes:
    return batch(
        stored([block], [block] * 4, parent=parent, extra_keys=[None], session_id=tenant),
        at_s=1_795_974_882.5,
    )


def test_events_and_sequences_reach_the_broker_also_over_a_gap(tmp_path: Path) -> None:
    with Publisher() as publisher:
        station = station_of(tmp_path, publisher, sequences=True)
        with kv_event_feeds(station.settings, lambda: HashKeys(station.settings)) as feeds:
            station.start(feeds=feeds, signals_of=signals_of(station.settings))
            publisher.wait_for_reader()
            publisher.send(0, store(1, "acme"))
            publisher.send(1, store(2, "acme", 1), dropped=True)
            publisher.send(2, store(3, "acme", 2))
            publisher.send(3, store(4, "globex", 2))
            deadline = time.monotonic() + 20
            while feeds[0].counts["parent_tenant_differs"] == 0 and time.monotonic() < deadline:
                station.turns(1)
                publisher.answer()
            feeds[0].is_ending = lambda: True
            station.stop()
    told = {(one.kind, one.detail, one.tenant, one.other_tenant) for one in events(station)}
    assert told == {
        (EventKind.CLEAR_FAILED, "requests_pending", None, None),
        (EventKind.REUSED, "parent_tenant_differs", "globex", "acme"),
    }
    assert {one.kv_pool for one in events(station)} == {"engine-0"}
    assert sorted((one.tenant, str(one.kind), one.token_count) for one in station.sequences()) == [
        ("acme", "prompt", 8),
        ("acme", "response", 8),
        ("globex", "prompt", 4),
    ]


def test_nothing_is_read_while_nothing_more_can_be_held(tmp_path: Path) -> None:
    with Publisher() as publisher:
        station = station_of(tmp_path, publisher)
        with kv_event_feeds(station.settings, lambda: HashKeys(station.settings)) as feeds:
            publisher.wait_for_reader()
            publisher.send(0, store(1, "acme"))
            feeds[0].is_full = lambda: True
            for _ in range(20):
                assert feeds[0](0.0) == []
                time.sleep(0.01)
            assert len(feeds[0].owners) == 0
            feeds[0].is_full = lambda: False
            deadline = time.monotonic() + 20
            while not len(feeds[0].owners) and time.monotonic() < deadline:
                feeds[0](0.0)
            assert len(feeds[0].owners) == 1


def test_an_endpoint_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    with Publisher() as publisher:
        station = station_of(tmp_path, publisher)
        source = station.settings.kv_events.sources[0]
        bad = source.model_copy(update={"endpoint": "tcp://no port"})
        settings = station.settings.model_copy(
            update={"kv_events": KvEventSettings(sources=(source, bad))}
        )
        with (
            pytest.raises(SettingsError, match="the endpoint of engine engine-0"),
            kv_event_feeds(settings, lambda: HashKeys(settings)),
        ):
            pass


PROGRAM = """
import sys
import detector.sidecar
from detector.config.root import Settings
from detector.errors import SettingsError
from detector.kv_events import kv_event_feeds
from ingest.kv_events.settings import KvEventSettings, KvEventSource

assert "zmq" not in sys.modules
sys.modules["zmq"] = None
source = KvEventSource(endpoint="tcp://127.0.0.1:5557", engine="e")
try:
    with kv_event_feeds(Settings(kv_events=KvEventSettings(sources=(source,))), lambda: 1 / 0):
        pass
except SettingsError as error:
    print(error)
"""


def test_without_zeromq_a_sidecar_works_and_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120
    )
    assert "bleedwatch[kv-events]" in done.stdout
