"""The key figures of engines as Prometheus reads them, from a real engine's pages to the text."""

import re

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from detector.config.load import load_settings
from detector.probe.watch import ProbeWatch
from detector.scraping import Scraping, scraping
from detector.signals import signals_of
from exporters.collector import Read
from exporters.engine_metrics import ENGINES, register_engines
from exporters.engine_state import EnginesState, EngineState
from ingest.schema_records import EventKind
from ingest.scrape.scraper import BackgroundScraper, make_scraper
from ingest.scrape.settings import ScrapeSettings, TargetSettings
from tests.unit.engine_server import engine_server, vllm_page


class _Source:
    """Engines at rest in a given state."""

    def __init__(self, state: EnginesState) -> None:
        self._state = state

    def engines(self) -> EnginesState:
        return self._state


def values(source: _Source | Scraping) -> dict[tuple[str, ...], float]:
    """Return every sample: its name and label values, as the list orders them, to its value."""
    registry = CollectorRegistry()
    register_engines(source, registry)
    labels = {metric.name: metric.labels for metric in ENGINES}
    return {
        (one.name, *(one.labels[label] for label in labels[one.name])): one.value
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for one in family.samples
    }


def test_values_are_those_of_the_state() -> None:
    engine = EngineState(
        engine="e",
        rank="1",
        unreleased_tokens=273,
        unreleased_quality="exact",
        pool_usage_ratio=0.5,
        clear_failures={"metrics": 1, "log": 2},
        metadata_mismatches={"log": 3},
        transfer_failures={"metrics": 4},
    )
    state = EnginesState(engines=(engine,), scrapes={("e", "ok"): 5}, dropped_samples=6)
    assert values(_Source(state)) == {
        ("bleedwatch_engine_unreleased_tokens", "e", "1", "exact"): 273,
        ("bleedwatch_engine_clear_failures_total", "e", "1", "metrics"): 1,
        ("bleedwatch_engine_clear_failures_total", "e", "1", "log"): 2,
        ("bleedwatch_engine_metadata_mismatches_total", "e", "1", "log"): 3,
        ("bleedwatch_engine_pool_usage_ratio", "e", "1"): 0.5,
        ("bleedwatch_engine_transfer_failures_total", "e", "1", "metrics"): 4,
        ("bleedwatch_engine_scrapes_total", "e", "ok"): 5,
        ("bleedwatch_engine_dropped_samples_total",): 6,
    }


def test_what_is_not_known_is_left_out() -> None:
    seen = values(_Source(EnginesState(engines=(EngineState(engine="e"),))))
    assert seen == {("bleedwatch_engine_dropped_samples_total",): 0}


def test_a_scraped_engine_comes_out_whole() -> None:
    with engine_server(metrics=vllm_page(usage=0.13)) as server:
        targets = (TargetSettings(url=server.url, engine="e"),)
        scraper = make_scraper(ScrapeSettings(targets=targets))
        for at_ms in (0, 5_000):
            scraper.samples(at_ms)
    background = BackgroundScraper(make_scraper(ScrapeSettings()), interval_s=1.0)
    background.scraper = scraper
    seen = values(Scraping(background, ProbeWatch(ScrapeSettings())))
    assert seen["bleedwatch_engine_unreleased_tokens", "e", "", "exact"] == 208
    assert seen["bleedwatch_engine_pool_usage_ratio", "e", ""] == 0.13
    assert seen["bleedwatch_engine_scrapes_total", "e", "ok"] == 2


def test_without_targets_nothing_is_scraped() -> None:
    with scraping(load_settings(environment={}).settings) as one:
        assert values(one) == {("bleedwatch_engine_dropped_samples_total",): 0}
        assert list(one.background.feed(0.0)) == []


def test_targets_of_the_settings_are_scraped() -> None:
    with engine_server(metrics=vllm_page()) as server:
        given = f"scrape.targets=[{{url: '{server.url}'}}]"
        settings = load_settings(
            environment={}, assignments=[given, "sidecar.engine=engine-0"]
        ).settings
        with scraping(settings) as one:
            assert ("bleedwatch_engine_scrapes_total", "engine-0", "ok") in values(one)


def test_failures_that_the_log_tells_are_counted_beside_those_of_the_metrics() -> None:
    settings = load_settings(environment={}).settings
    line = (
        b"[2026-11-29 18:00:21] Cache not flushed because there are pending requests. "
        b"#queue-req: 0, #running-req: 2"
    )
    with scraping(settings) as one:
        signals = one.overheard(signals_of(settings))("e", None)
        assert signals(b"[2026-11-29 18:00:21] Cache flushed successfully!") is None
        found = signals(line)
        assert found is not None
        assert found.kind == EventKind.CLEAR_FAILED
        assert values(one)["bleedwatch_engine_clear_failures_total", "e", "", "log"] == 1


@pytest.mark.parametrize("metric", ENGINES, ids=lambda metric: str(metric.name))
def test_names_follow_the_rules_of_prometheus(metric: Read[EnginesState]) -> None:
    assert re.fullmatch(r"bleedwatch_engine(_[a-z]+)+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.help.endswith(".")
    assert set(metric.labels) <= {"engine", "rank", "quality", "source", "outcome"}
