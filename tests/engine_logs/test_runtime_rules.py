"""Genuine engine logs against the runtime rules: faults are told once, good traffic is silent."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from detector.config.load import load_settings
from detector.config.root import Settings
from detector.finding import Finding
from detector.reading import Reading
from detector.service import deployment_table
from detector.signals import signals_of
from detector.streaming.runtime_watch import RuntimeWatch
from ingest.schema_records import EngineEvent, EventKind
from ingest.schema_sequence import to_record
from tests.engine_logs.test_scrape import text

TENANT = '[{"kind":"request_id","pattern":"(?P<tenant>.{3})"}]'
"""The first characters of an id, so that there are many tenants."""


def path(name: str) -> Path:
    return Path(os.environ["BLEEDWATCH_EVAL_DATA"]) / "engine-logs" / name


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load_settings(environment={}, assignments=[f"tenancy.rules={TENANT}"]).settings


def events(settings: Settings, name: str) -> Iterator[EngineEvent]:
    read = signals_of(settings)("e", None)
    lines = text(path(name)).encode().split(b"\n")
    return (one for line in lines if (one := read(line)) is not None)


def found(settings: Settings, *, requests: str | None, signals: str) -> list[Finding]:
    watch = RuntimeWatch(settings.runtime, settings.detection.window)
    told: list[Finding] = []
    for event in events(settings, signals):
        told += watch.event(event, is_news=True)
    if requests is not None:
        reading = Reading(settings, deployment_table(settings))
        records = list(reading.sequences([str(path(requests))], engine="e", kv_pool="e"))
        assert records
        told += watch.parts(map(to_record, records), is_news=True)
    return [*told, *watch.idle()]


def test_a_genuine_leak_is_told_once(settings: Settings) -> None:
    log = "sglang/c-fault-leak/server.log.stderr"
    kinds = Counter(one.kind for one in events(settings, log))
    assert kinds[EventKind.LEAK_DETECTED] > 100
    assert [one.rule for one in found(settings, requests=None, signals=log)] == ["BW201"]


@pytest.mark.parametrize(
    ("requests", "signals"),
    [
        ("sglang/a-level3-json/server.log.zst", "sglang/a-level3-json/server.log.stderr"),
        ("sglang/a-level3-json/server.log.zst", "sglang/a-level3-json/server.log.zst"),
        ("sglang/c-fault-leak/server.log.zst", "sglang/c-fault-leak/server.log.zst"),
        ("vllm/a-debug-text/server.log.zst", "vllm/a-debug-text/server.log.zst"),
    ],
)
def test_rejected_requests_of_good_engines_contradict_nothing(
    settings: Settings, requests: str, signals: str
) -> None:
    kinds = Counter(one.kind for one in events(settings, signals))
    assert kinds[EventKind.REJECTED] > 0
    told = Counter(one.rule for one in found(settings, requests=requests, signals=signals))
    assert told == Counter({"BW202": min(kinds[EventKind.CLEAR_FAILED], 1)})
