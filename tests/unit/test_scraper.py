"""Many engines: names, threads of their own, failures counted, figures that never go back."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from detector.errors import SettingsError
from ingest.schema_records import EngineEvent, EventKind, Quality, RuntimeSample
from ingest.scrape.figures import KeyFigures
from ingest.scrape.scraper import BackgroundScraper, Scraper, make_scraper
from ingest.scrape.settings import ScrapeSettings, TargetSettings
from ingest.scrape.target import Identity, Target
from tests.unit.engine_server import EngineServer, answer, engine_server, sglang_page, vllm_page

WAIT_S = 20.0
"""Far above what is waited for, for a machine under load."""


@pytest.fixture
def server() -> Iterator[EngineServer]:
    with engine_server(metrics=vllm_page(usage=0.13)) as one:
        yield one


def settings(*targets: TargetSettings, **more: int) -> ScrapeSettings:
    return ScrapeSettings(targets=targets, timeout_ms=2_000, **more)


def eventually(is_so: Callable[[], bool]) -> None:
    until_s = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < until_s
        time.sleep(0.01)


def test_every_engine_of_a_pod_gives_samples_of_its_own(server: EngineServer) -> None:
    page = sglang_page(num_running_reqs=0, num_queue_reqs=0, num_used_tokens=9)
    with engine_server(metrics=page) as other:
        scraper = make_scraper(
            settings(
                TargetSettings(url=server.url, engine="a", kv_pool="shared"),
                TargetSettings(url=other.url, engine="b"),
            )
        )
        samples = scraper.samples(1)
    assert [(s.engine, s.kv_pool, s.engine_kind) for s in samples] == [
        ("a", "shared", "vllm"),
        ("b", "b", "sglang"),
    ]


def test_names_come_from_the_target_then_the_sidecar_then_the_address(server: EngineServer) -> None:
    plain = TargetSettings(url=server.url)
    named = make_scraper(settings(plain), engine="engine-0", kv_pool="pool-0").targets[0].identity
    assert (named.engine, named.kv_pool) == ("engine-0", "pool-0")
    address = server.url.removeprefix("http://")
    unnamed = make_scraper(settings(plain)).targets[0].identity
    assert (unnamed.engine, unnamed.kv_pool) == (address, address)


def test_two_engines_of_one_name_are_refused(server: EngineServer) -> None:
    with pytest.raises(SettingsError, match="two targets"):
        make_scraper(settings(*[TargetSettings(url=server.url)] * 2), engine="engine-0")


def test_an_unknown_kind_is_refused(server: EngineServer) -> None:
    with pytest.raises(SettingsError, match="no mapping"):
        make_scraper(settings(TargetSettings(url=server.url, kind="other")))


def test_an_engine_that_is_down_is_counted_and_hides_no_other(
    server: EngineServer, tmp_path: Path
) -> None:
    down = TargetSettings(url="http://127.0.0.1:9", engine="down")
    keyless = TargetSettings(url=server.url, engine="keyless", token_file=str(tmp_path / "none"))
    scraper = make_scraper(settings(down, keyless, TargetSettings(url=server.url, engine="up")))
    assert [sample.engine for sample in scraper.samples(1)] == ["up"]
    assert scraper.counted() == {
        ("down", "ok"): 0,
        ("keyless", "ok"): 0,
        ("up", "ok"): 1,
        ("down", "unreachable"): 1,
        ("keyless", "settings"): 1,
    }
    assert set(scraper.problems) == {"down", "keyless"}


def test_a_fault_of_ours_is_counted_and_told_without_its_words(server: EngineServer) -> None:
    good = make_scraper(settings(TargetSettings(url=server.url, engine="e"))).targets[0]
    faulty = Target(good.endpoint, Identity("f", "f", "kind-without-mapping"), {}, refresh_ms=1)
    scraper = Scraper([faulty, good])
    assert [sample.engine for sample in scraper.samples(1)] == ["e"]
    assert scraper.counted()["f", "fault"] == 1
    assert "KeyError" in str(scraper.problems["f"])
    assert "kind-without-mapping" not in str(scraper.problems["f"])


def test_levels_of_an_engine_that_went_away_are_unknown_and_counts_stay(
    server: EngineServer,
) -> None:
    scraper = make_scraper(settings(TargetSettings(url=server.url, engine="e")))
    scraper.samples(0)
    scraper.samples(5_000)
    (before,) = scraper.figures()
    assert (before.unreleased_tokens, before.unreleased_quality) == (208, Quality.EXACT)
    server.pages["/metrics"] = lambda handler: answer(handler, 503, b"")
    assert scraper.samples(10_000) == []
    (after,) = scraper.figures()
    assert (after.unreleased_tokens, after.pool_usage_ratio) == (None, None)
    assert after.unreleased_quality == Quality.UNKNOWN


def test_a_feed_gives_what_threads_have_scraped_and_never_waits(server: EngineServer) -> None:
    server_down = TargetSettings(url="http://127.0.0.1:9", engine="down")
    scraper = make_scraper(settings(server_down, TargetSettings(url=server.url, engine="up")))
    background = BackgroundScraper(scraper, interval_s=0.05, clock_ms=lambda: 77)
    taken: list[RuntimeSample] = []

    def has_taken() -> bool:
        taken.extend(background.feed(0.0))
        return len(taken) >= 2

    try:
        eventually(has_taken)
    finally:
        background.close()
    assert {(sample.engine, sample.sampled_at_ms) for sample in taken} == {("up", 77)}
    asked = len(server.asked)
    time.sleep(0.2)
    assert len(server.asked) == asked


def test_a_hanging_engine_delays_no_other(server: EngineServer) -> None:
    def hang(_: object) -> None:
        time.sleep(1.0)

    with engine_server(metrics=hang) as hung:
        scraper = make_scraper(
            settings(
                TargetSettings(url=hung.url, engine="hung"),
                TargetSettings(url=server.url, engine="up"),
            )
        )
        background = BackgroundScraper(scraper, interval_s=0.01)
        try:
            eventually(lambda: scraper.counted()["up", "ok"] >= 5)
        finally:
            background.close()


def sample(**fields: int) -> RuntimeSample:
    return RuntimeSample(
        engine="e",
        kv_pool="p",
        sampled_at_ms=0,
        engine_kind="vllm",
        **fields,  # type: ignore[arg-type]
    )


def counts(figures: KeyFigures) -> dict[tuple[str, str], int]:
    (one,) = figures.snapshot()
    return {key: count for key, count in one.counts.items() if count}


def test_counts_go_on_when_the_engines_own_begin_anew() -> None:
    figures = KeyFigures()
    for total in (40, 41, 43, 2, 2, 5):
        figures.sampled(sample(clear_failures_total=total))
    # one and two before the restart, two at once and three after it
    assert counts(figures) == {("clear_failures", "metrics"): 8}


def test_a_counter_that_is_not_there_for_a_while_counts_what_it_missed() -> None:
    figures = KeyFigures()
    figures.sampled(sample(transfer_failures_total=1))
    figures.sampled(sample())
    figures.sampled(sample(transfer_failures_total=4))
    assert counts(figures) == {("transfer_failures", "metrics"): 3}


def test_events_of_the_log_count_as_what_they_are() -> None:
    figures = KeyFigures()
    for kind in EventKind:
        figures.heard(EngineEvent(kind=kind, engine="e", kv_pool="p", at_ms=0))
    assert counts(figures) == {
        ("clear_failures", "log"): 3,
        ("metadata_mismatches", "log"): 2,
        ("transfer_failures", "log"): 1,
    }


def test_lines_that_tell_one_leak_again_and_again_are_no_count_and_no_size() -> None:
    figures = KeyFigures()
    figures.sampled(sample(unreleased_tokens=273))
    for _ in range(121):
        leak = EngineEvent(kind=EventKind.LEAK_DETECTED, engine="e", kv_pool="p", at_ms=0)
        figures.heard(leak)
    (one,) = figures.snapshot()
    assert one.unreleased_tokens == 273
    assert counts(figures) == {}


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000",
        "ftp://engine:8000",
        "http://",
        "http://user:s3cret@engine:8000",
        "http://engine:8000/metrics",
        "http://engine:8000?key=s3cret",
        "http://engine:99999",
    ],
)
def test_an_address_is_a_server_and_nothing_else(url: str) -> None:
    with pytest.raises(ValueError, match="must"):
        TargetSettings(url=url)
