"""The handler of a process does what its settings say, down to packing and dead letters."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from detector.config.load import load_settings
from detector.errors import InputError, TooManyDeadLettersError
from detector.match.digests import Digester
from detector.sketch.token_table import TokenTable
from detector.streaming.compose import new_handler
from detector.streaming.handler import StreamHandler
from ingest.broker import BrokerRecord
from ingest.record_batches import pack_clear
from ingest.schema_records import EngineEvent, EventKind
from ingest.topics import topic_names
from tests.unit.wire import RING, SECRET

TOPICS = topic_names("bleedwatch")
REJECTED = 40


def made(*assignments: str) -> StreamHandler:
    """Return the handler that these settings make, with one partition."""
    settings = load_settings(None, assignments=assignments, environment={}).settings
    table = TokenTable(SECRET.keys().hash_key)
    handler = new_handler(settings, ring=lambda: RING, table=table, partitions=1)
    handler.assign(0, {})
    return handler


def rejections() -> BrokerRecord:
    """Return a message of events that become a row each."""
    events = [
        EngineEvent(
            kind=EventKind.REJECTED, engine="e", kv_pool="p", at_ms=at, tenant="a",
            request_id=f"r-{at}",
        )
        for at in range(REJECTED)
    ]  # fmt: skip
    return BrokerRecord(TOPICS.engine_events, 0, 0, b"p", pack_clear(events), (), 1_000)


@pytest.mark.parametrize(
    ("assignments", "messages"), [((), 1), (("packing.target_bytes=100",), REJECTED)]
)
def test_rows_are_packed_as_the_settings_say(assignments: tuple[str, ...], messages: int) -> None:
    outcome = made(*assignments).take(0, [rejections()])
    assert [one.topic for one in outcome.messages].count(TOPICS.requests) == messages


def test_dead_letters_stop_it_where_the_settings_say() -> None:
    junk = [BrokerRecord(TOPICS.sequences, 0, at, b"p", b"junk", (), 1_000) for at in range(10)]
    sent = [one.topic for one in made().take(0, junk).messages]
    assert sent.count(TOPICS.dead_letter) == 10
    strict = made("dead_letters.min_messages=5", "dead_letters.max_share=0.1")
    with pytest.raises(TooManyDeadLettersError):
        strict.take(0, junk)


def test_hashed_allow_lists_are_those_of_the_secret(tmp_path: Path) -> None:
    keys = SECRET.keys()
    digester = Digester(keys.tag_key, key_id=keys.key_id)
    judged = tmp_path / "judged.jsonl"
    digests = digester.of(np.arange(3), are_tags=False, key_id=keys.key_id)
    assert digests is not None
    judged.write_bytes(msgspec.json.encode(digests))
    chosen = (f'detection.filter.allow_lists=["{judged}"]',)
    settings = load_settings(None, assignments=chosen, environment={}).settings
    table = TokenTable(keys.hash_key, key_id=keys.key_id)
    with pytest.raises(InputError, match="has no key"):
        new_handler(settings, ring=lambda: RING, table=table, partitions=1)
    new_handler(settings, ring=lambda: RING, table=table, partitions=1, digester=digester)
