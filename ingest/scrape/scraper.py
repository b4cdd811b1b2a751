"""Scrapes engines in turn, or each in a thread of its own; what fails is counted, never zero."""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from detector.errors import BleedwatchError, ScrapeError, SettingsError
from ingest.schema_records import EngineEvent, RuntimeSample
from ingest.scrape.figures import EngineFigures, KeyFigures
from ingest.scrape.http import Endpoint
from ingest.scrape.mapping import Mapping, load_mappings
from ingest.scrape.settings import ScrapeSettings, TargetSettings
from ingest.scrape.target import Identity, Target

_log = logging.getLogger(__name__)

MAX_WAITING: Final = 4_096
"""Samples that wait for the loop at most, some 2 MB; the oldest goes, which is counted."""

CLOSE_S: Final = 3.0
"""How long closing waits for a scrape that is under way."""

OK: Final = "ok"
SETTINGS: Final = "settings"
FAULT: Final = "fault"


class Scraper:
    """Makes runtime samples of engines. Safe to use from several threads, one for each target.

    `outcomes` counts scrapes by engine and outcome: "ok", or the reason of a ScrapeError,
    "settings" for a token file that cannot be used, "fault" for a bug of ours.
    """

    def __init__(self, targets: Sequence[Target]) -> None:
        self.targets = tuple(targets)
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.problems: dict[str, BleedwatchError] = {}
        """Why the last scrape of an engine failed, by its name."""
        self._figures = KeyFigures()
        self._lock = threading.Lock()

    def samples(self, now_ms: int) -> list[RuntimeSample]:
        """Scrape every target, one after the other; return what could be had."""
        return [sample for target in self.targets for sample in self.of(target, now_ms)]

    def of(self, target: Target, now_ms: int) -> list[RuntimeSample]:
        """Scrape one target; an engine that does not answer gives no sample and is counted."""
        engine = target.identity.engine
        try:
            samples = target.samples(now_ms)
        except (ScrapeError, SettingsError) as error:
            self._failed(engine, error)
            return []
        except Exception as error:  # noqa: BLE001 - an odd answer must not end the watching
            fault = f"a fault of ours ({type(error).__name__}); this is a bug in bleedwatch"
            self._failed(engine, ScrapeError(FAULT, fault, where=target.endpoint.name))
            return []
        with self._lock:
            self.outcomes[engine, OK] += 1
            self.problems.pop(engine, None)
            for sample in samples:
                self._figures.sampled(sample)
        return samples

    def heard(self, event: EngineEvent) -> None:
        """Count an event of a log among the figures."""
        with self._lock:
            self._figures.heard(event)

    def figures(self) -> list[EngineFigures]:
        """Return the figures of every engine as of now."""
        with self._lock:
            return list(self._figures.snapshot())

    def counted(self) -> dict[tuple[str, str], int]:
        """Return `outcomes`, with those that have not happened yet at zero where they are ok."""
        with self._lock:
            names = {(target.identity.engine, OK): 0 for target in self.targets}
            return {**names, **self.outcomes}

    def _failed(self, engine: str, error: ScrapeError | SettingsError) -> None:
        reason = error.reason if isinstance(error, ScrapeError) else SETTINGS
        with self._lock:
            self.outcomes[engine, reason] += 1
            is_new = str(self.problems.get(engine)) != str(error)
            self.problems[engine] = error
            self._figures.lost(engine)
        if is_new:
            _log.warning("no sample of engine %s: %s", engine, error)


class BackgroundScraper:
    """Scrapes each target in a thread of its own, so that no engine delays another or the loop.

    `feed` is what the loop of a sidecar asks in every turn.
    """

    def __init__(
        self,
        scraper: Scraper,
        *,
        interval_s: float,
        clock_ms: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        self.scraper = scraper
        self.dropped = 0
        """Samples that were given up because the loop did not take them."""
        self._interval_s = interval_s
        self._clock_ms = clock_ms
        self._waiting: deque[RuntimeSample] = deque()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(target,), name=f"scrape-{number}", daemon=True)
            for number, target in enumerate(scraper.targets)
        ]
        for thread in self._threads:
            thread.start()

    def feed(self, now_s: float) -> Iterator[RuntimeSample]:  # noqa: ARG002 - the form of a feed
        """Yield what has been scraped since the last call; never waits."""
        while self._waiting:
            yield self._waiting.popleft()

    def close(self) -> None:
        """End the threads; a scrape under way is waited for a moment."""
        self._stop.set()
        until_s = time.monotonic() + CLOSE_S
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))

    def _run(self, target: Target) -> None:
        next_s = time.monotonic()
        while not self._stop.wait(max(0.0, next_s - time.monotonic())):
            next_s = max(next_s + self._interval_s, time.monotonic())
            for sample in self.scraper.of(target, self._clock_ms()):
                if len(self._waiting) >= MAX_WAITING:
                    self._waiting.popleft()
                    self.dropped += 1
                self._waiting.append(sample)


def make_scraper(
    settings: ScrapeSettings, *, engine: str | None = None, kv_pool: str | None = None
) -> Scraper:
    """Return the scraper of the settings; `engine` and `kv_pool` are those of the sidecar.

    Raises SettingsError for a mapping file that cannot be used, an unknown kind, or two targets of
    one name.
    """
    mappings = load_mappings(settings.mapping_files)
    targets = [
        _target(one, settings, mappings, engine=engine, kv_pool=kv_pool) for one in settings.targets
    ]
    names = Counter(target.identity.engine for target in targets)
    twice = next((name for name, count in names.items() if count > 1), None)
    if twice is not None:
        raise SettingsError(
            f"two targets are called {twice!r}",
            where="scrape.targets",
            hint="give each an engine of its own; sidecar.engine names only one",
        )
    return Scraper(targets)


def _target(
    given: TargetSettings,
    settings: ScrapeSettings,
    mappings: dict[str, Mapping],
    *,
    engine: str | None,
    kv_pool: str | None,
) -> Target:
    if given.kind not in ("auto", *mappings):
        raise SettingsError(
            f"there is no mapping for {given.kind!r}",
            where="scrape.targets.kind",
            hint=f"one of auto, {', '.join(mappings)}, or a file in scrape.mapping_files",
        )
    name = given.engine or engine or urlsplit(given.url).netloc
    endpoint = Endpoint(
        given.url,
        timeout_s=settings.timeout_ms / 1000,
        max_bytes=settings.max_body_bytes,
        token_file=given.token_file,
        ca_file=given.ca_file,
    )
    identity = Identity(name, given.kv_pool or kv_pool or name, given.kind, given.role)
    return Target(endpoint, identity, mappings, refresh_ms=settings.refresh_ms)
