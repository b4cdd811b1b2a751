"""A blast radius of what topics retain is that of a store that has read them from the start."""

import msgspec
import pytest
from hypothesis import given, settings

from detector.api.from_topics import Kept, retained_store
from detector.config.root import Settings
from detector.errors import BrokerError
from exporters.store.blast_radius import Scope, affected_requests, blast_radius
from exporters.store.database import Database
from exporters.store.request_rows import StoredRequest
from ingest.broker import Message
from ingest.kafka_settings import KafkaSettings
from ingest.memory_io import MemoryBroker
from ingest.schema_records import RequestRow
from tests.store.made import found
from tests.store.test_blast_radius import FINDINGS, REQUESTS, SCOPES, brute_force
from tests.store.topics import TOPICS, Results, packed, request

SETTINGS = Settings(kafka=KafkaSettings(topic_prefix="t"))
ALL = Scope("a", 0, 100_000)


def row(one: StoredRequest) -> RequestRow:
    return RequestRow(**msgspec.structs.asdict(one))


def kept_topics() -> Results:
    results = Results()
    for begin in range(0, len(REQUESTS), 50):
        results.send_rows(*map(row, REQUESTS[begin : begin + 50]))
    results.send(*FINDINGS)
    return results


def counts(results: Results, scope: Scope) -> dict[str, int]:
    with (
        retained_store(results.broker.reader(), SETTINGS, scope) as (database, _),
        database.read() as connection,
    ):
        return blast_radius(connection, scope).tenants


def test_it_counts_what_counting_row_by_row_does_for_every_scope() -> None:
    results = kept_topics()

    @settings(max_examples=25, deadline=None)
    @given(scope=SCOPES)
    def check(scope: Scope) -> None:
        assert counts(results, scope) == brute_force(scope)

    check()
    assert sum(counts(results, ALL).values()) > 100


def test_it_lists_what_a_store_lists_that_has_recorded_the_topics(database: Database) -> None:
    results = kept_topics()
    results.send_rows(  # a second row tells the engine that answered, and how it ended
        request("r1", 1, engine="prefill", prompt_tokens=7),
        request("r1", 1, engine="decode", completion_tokens=3, status=200),
    )
    recorder = results.recorder(database)
    while recorder.turn(0) or any(recorder.lag().values()):
        pass
    with (
        database.read() as stored,
        retained_store(results.broker.reader(), SETTINGS, ALL) as (retained, kept),
        retained.read() as connection,
    ):
        listed = sorted(affected_requests(connection, ALL), key=str)
        assert listed == sorted(affected_requests(stored, ALL), key=str)
        (one,) = (one for one in listed if one.started_at_ms == 1_000 and one.tenant == "acme")
    assert (one.engine, one.prompt_tokens, one.completion_tokens) == ("decode", 7, 3)
    assert (kept.refused, kept.first_sent_ms) == (0, None)


def test_what_cannot_be_read_is_counted() -> None:
    results = kept_topics()
    before = counts(results, ALL)
    (good,) = packed([request("x", 2)])
    results.send_raw(Message(TOPICS.requests, b"\xc1", key=good.key, headers=good.headers))
    results.send_raw(Message(TOPICS.findings, b"{", key=good.key))
    scope = ALL._replace(contradicted=True)
    with retained_store(results.broker.reader(), SETTINGS, scope) as (_, kept):
        assert kept.refused == 2
    assert counts(results, ALL) == before


def test_a_topic_that_is_not_there_is_told() -> None:
    broker = MemoryBroker({TOPICS.findings: 1})
    with (
        pytest.raises(BrokerError, match="there is no such topic"),
        retained_store(broker.reader(), SETTINGS, ALL),
    ):
        pass


def test_what_retention_has_taken_is_told() -> None:
    now = [100.0]
    broker = MemoryBroker(dict.fromkeys(TOPICS, 1), keep_bytes=2_000, now_s=lambda: now[0])
    publisher = broker.publisher()
    for number in range(40):
        now[0] += 1
        for message in packed([request(f"r{number}", now[0] - 1)]):
            publisher.send(message).result()

    def kept(from_s: float) -> Kept:
        scope = Scope("a", int(from_s * 1000), 200_000)
        with retained_store(broker.reader(), SETTINGS, scope) as (_, read):
            return read

    whole = kept(100)
    assert whole.first_sent_ms is not None
    assert 100_000 < whole.first_sent_ms < 140_000
    assert whole.rows == (140_000 - whole.first_sent_ms) // 1_000 + 1 < 40
    assert kept(whole.first_sent_ms / 1_000).first_sent_ms is None


def test_a_finding_that_contradicts_counts_whenever_it_was_told() -> None:
    results = Results()
    results.send_rows(request("late", 50), request("other", 51))
    results.send(found("f", 90_000, pool="a", rule="BW102", sink="acme", request="late"))
    scope = ALL._replace(contradicted=True)
    assert counts(results, scope) == {"acme": 1}
