"""The recorded hour beside healthy engines raises none of the rules that compare no text."""

from collections.abc import Iterator
from pathlib import Path

from detector.config.load import load_settings
from detector.finding import Finding
from detector.model import Sequence
from detector.reading import Reading
from detector.service import deployment_table
from detector.sketch.shingle import low_complexity
from detector.streaming.runtime_watch import RuntimeWatch
from ingest.schema_sequence import to_record
from tests.unit.runtime_records import healthy

SCRAPE_MS = 5_000


def sequences(path: Path) -> Iterator[Sequence]:
    chosen = load_settings(environment={}).settings
    yield from Reading(chosen, deployment_table(chosen)).sequences([str(path)])


def test_recorded_traffic_contradicts_nothing(recorded_traffic: Path) -> None:
    chosen = load_settings(environment={}).settings
    watch = RuntimeWatch(chosen.runtime, chosen.detection.window)
    told: list[Finding] = []
    engines: dict[str, str] = {}
    scraped_ms = 0
    taken = 0
    for one in sequences(recorded_traffic / "dev" / "requests.jsonl.zst"):
        engines[one.engine] = one.kv_pool
        if one.ended_at_ms - scraped_ms >= SCRAPE_MS:
            scraped_ms = one.ended_at_ms
            for engine, pool in engines.items():
                well = healthy(scraped_ms / 1000, engine=engine, kv_pool=pool)
                told += watch.sample(well, is_news=True)
        told += watch.parts([to_record(one)], is_news=True)
        low = low_complexity(one.token_hashes, chosen.detection.filter.min_distinct)
        told += watch.observed(one, shingles=len(low), low_complexity=int(low.sum()))
        taken += 1
    told += watch.idle()
    assert taken > 10_000
    assert not told
