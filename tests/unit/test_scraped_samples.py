"""Samples of a scraped engine reach the topic of runtime samples through the loop of a sidecar."""

import time
from pathlib import Path

from detector.scraping import scraping
from ingest.opening import open_records
from ingest.schema_records import RuntimeSample
from tests.e2e.traffic import pairs, write_sglang
from tests.unit.engine_server import engine_server, vllm_page
from tests.unit.sidecars import Station

WAIT_S = 30.0
"""Far above what is waited for, for a machine under load."""


def samples(station: Station) -> list[RuntimeSample]:
    found: list[RuntimeSample] = []
    for message in station.messages(station.topics.runtime):
        opened = open_records(RuntimeSample, message)
        assert not opened.rejected
        found += opened.records
    return found


def test_samples_reach_their_topic(tmp_path: Path) -> None:
    log = write_sglang(tmp_path / "server.log", pairs(2))
    station = Station(tmp_path, str(log))
    with engine_server(metrics=vllm_page(usage=0.13)) as server:
        scrape = {"targets": [{"url": server.url}], "interval_ms": 500}
        settings = type(station.settings).model_validate(
            {**station.settings.model_dump(), "scrape": scrape}
        )
        with scraping(settings) as engines:
            station.start(feeds=(engines.background.feed,))
            until_s = time.monotonic() + WAIT_S
            while len(samples(station)) < 2:
                assert time.monotonic() < until_s
                station.turns(1)
                time.sleep(0.02)
            station.stop()
    first, second = samples(station)[:2]
    assert (first.engine, first.kv_pool, first.engine_kind) == ("engine-0", "engine-0", "vllm")
    assert first.unreleased_tokens == second.unreleased_tokens == 208
    assert second.sampled_at_ms > first.sampled_at_ms
