"""Composition of the scraper: engines from the settings, feed for the loop, state for metrics."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from detector.config.root import Settings
from detector.probe.watch import ProbeWatch
from exporters.engine_state import EnginesState, EngineState
from ingest.schema_records import EngineEvent, RuntimeSample
from ingest.scrape.figures import (
    CLEAR_FAILURES,
    METADATA_MISMATCHES,
    TRANSFER_FAILURES,
    EngineFigures,
)
from ingest.scrape.scraper import BackgroundScraper, make_scraper

Signals = Callable[[bytes], EngineEvent | None]
SignalsOf = Callable[[str, str | None], Signals]
"""Returns what makes events of the log lines of an engine (name, KV pool if it is set)."""


class Scraping:
    """The scraper of a process: `background.feed` for the loop, `engines` for the metrics."""

    def __init__(self, background: BackgroundScraper, probes: ProbeWatch) -> None:
        self.background = background
        self._probes = probes

    @property
    def feeds(self) -> tuple[Callable[[float], Iterator[RuntimeSample]], ...]:
        """What the loop asks in every turn: nothing where no engine is scraped."""
        return (self.background.feed,) if self.background.scraper.targets else ()

    def overheard(self, signals_of: SignalsOf) -> SignalsOf:
        """Return the same signals; the failures that logs tell are counted among the figures."""
        scraper = self.background.scraper

        def make(engine: str, kv_pool: str | None) -> Signals:
            signals = signals_of(engine, kv_pool)

            def event(line: bytes) -> EngineEvent | None:
                found = signals(line)
                if found is not None:
                    scraper.heard(found)
                return found

            return event

        return make

    def engines(self) -> EnginesState:
        """Return the state of the engines as of now."""
        scraper = self.background.scraper
        return EnginesState(
            engines=tuple(_state(figures) for figures in scraper.figures()),
            scrapes=scraper.counted(),
            dropped_samples=self.background.dropped,
            probe_stale=self._probes.stale(),
        )


@contextmanager
def scraping(settings: Settings) -> Iterator[Scraping]:
    """Scrape the engines of the settings, if there are any, until the block ends.

    Raises SettingsError for a mapping, a certificate file or names that cannot be used.
    """
    names = {"engine": settings.sidecar.engine, "kv_pool": settings.sidecar.kv_pool}
    scraper = make_scraper(settings.scrape, **names)
    background = BackgroundScraper(scraper, interval_s=settings.scrape.interval_ms / 1000)
    probes = ProbeWatch(settings.scrape, **names)
    probes.start()
    try:
        yield Scraping(background, probes)
    finally:
        probes.close()
        background.close()


def _state(figures: EngineFigures) -> EngineState:
    return EngineState(
        engine=figures.engine,
        rank="" if figures.rank is None else str(figures.rank),
        unreleased_tokens=figures.unreleased_tokens,
        unreleased_quality=figures.unreleased_quality.value,
        pool_usage_ratio=figures.pool_usage_ratio,
        clear_failures=_by_source(figures.counts, CLEAR_FAILURES),
        metadata_mismatches=_by_source(figures.counts, METADATA_MISMATCHES),
        transfer_failures=_by_source(figures.counts, TRANSFER_FAILURES),
    )


def _by_source(counts: Mapping[tuple[str, str], int], figure: str) -> dict[str, int]:
    return {source: count for (name, source), count in counts.items() if name == figure}
