"""What runs beside the loop of a sidecar, counted for its health, its metrics and its reports."""

from collections import Counter
from collections.abc import Iterable

from detector.pushing import Pushing
from detector.scraping import Scraping
from ingest.kv_events.feed import KvEventFeed
from ingest.push.intake import PushIntake
from ingest.scrape.scraper import OK
from ingest.sidecar_beside import BesideHealth, EngineHealth, KvEventsHealth, PushHealth

NOT_UP = frozenset({OK, "unreachable"})
"""Outcomes that hide nothing: an engine that cannot be reached serves nobody."""


def beside(pushes: Pushing, scraped: Scraping, kv_events: Iterable[KvEventFeed]) -> BesideHealth:
    """Return it as of now; from the thread of the loop."""
    return BesideHealth(
        push=None if pushes.intake is None else push_health(pushes.intake),
        kv_events=tuple(map(_kv_events, kv_events)),
        engines=_engines(scraped),
        dropped_samples=scraped.background.dropped,
    )


def push_health(intake: PushIntake) -> PushHealth:
    """Return what came through a push port."""
    coverage = intake.coverage
    incomplete: Counter[str] = Counter()
    for row in coverage.losses():
        incomplete[f"{row.side}.{row.loss}"] += row.requests
    return PushHealth(
        requests=coverage.requests,
        unmapped=coverage.unmapped_tenants,
        refused=dict(coverage.broken_by_reason),
        incomplete=dict(incomplete),
        waiting_bytes=intake.waiting_bytes,
    )


def _kv_events(feed: KvEventFeed) -> KvEventsHealth:
    return KvEventsHealth(
        engine=feed.engine,
        kv_pool=feed.kv_pool,
        messages=dict(feed.messages),
        unreadable=dict(feed.broken),
        told=dict(feed.counts),
    )


def _engines(scraped: Scraping) -> tuple[EngineHealth, ...]:
    scraper = scraped.background.scraper
    failed: Counter[str] = Counter()
    for (engine, outcome), count in scraper.counted().items():
        failed[engine] += 0 if outcome in NOT_UP else count
    pools = {one.identity.engine: one.identity.kv_pool for one in scraper.targets}
    return tuple(EngineHealth(engine, pools[engine], count) for engine, count in failed.items())
