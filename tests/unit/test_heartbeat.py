"""Heartbeats: found as any bleed is, told as nothing but a heartbeat, and nobody can be one."""

from typing import Any

import pytest

from detector.finding import Severity
from detector.heartbeat import RESERVED, RULE, SINK, SOURCE, is_reserved, sent_ms
from detector.model import Kind, Sequence
from detector.sketch.token_table import Secret, TokenTable
from ingest.chat_template import ChatTemplate, ChatTemplateSettings
from ingest.coverage import Coverage
from ingest.door import Door
from ingest.heartbeat import Heartbeats, StreamTime
from ingest.schema import check
from ingest.schema_sequence import check_sequence
from ingest.sources.base import RawRequest
from ingest.tenancy import Tenancy, TenancySettings
from tests.unit.sequences import prompt, response, text
from tests.unit.streams import TOPICS, Stream

WALL_MS = 1_800_000_000_000
EVERY_S = 120


def made(time: StreamTime | None = None, **changed: Any) -> Heartbeats:
    settings: dict[str, Any] = {
        "every_ms": EVERY_S * 1000,
        "time": time or StreamTime(),
        "key_id": lambda: "k",
        "wall_ms": lambda: WALL_MS,
    }
    return Heartbeats("engine-1", **(settings | changed))


def beat(at_s: float) -> list[Sequence]:
    """Return a heartbeat that was made at a second of event time."""
    return due(made(wall_ms=lambda: int(at_s * 1000), key_id=lambda: ""))


def due(beats: Heartbeats, now_s: float = 0.0) -> list[Sequence]:
    """Return the first one."""
    beats.due(now_s - EVERY_S)
    return beats.due(now_s)


def test_they_are_made_as_often_as_is_set_and_none_before_records_were_heard_of() -> None:
    beats = made()
    assert beats.due(5.0) == []
    assert beats.due(5.0 + EVERY_S - 0.1) == []
    assert beats.sent_ms is None
    assert len(beats.due(5.0 + EVERY_S)) == 4
    assert beats.sent_ms == WALL_MS
    assert beats.due(5.0 + 2 * EVERY_S - 0.1) == []
    assert len(beats.due(5.0 + 2 * EVERY_S)) == 4


def test_it_is_a_whole_request_of_each_reserved_tenant_with_fresh_hashes() -> None:
    first, second = due(made()), due(made())
    assert [(one.tenant, one.kind) for one in first] == [
        (SOURCE, Kind.PROMPT),
        (SOURCE, Kind.RESPONSE),
        (SINK, Kind.PROMPT),
        (SINK, Kind.RESPONSE),
    ]
    assert {is_reserved(one.kv_pool) for one in first} == {True}
    assert {sent_ms(one.request_id) for one in first} == {WALL_MS}
    drawn = {int(token) for one in (*first, *second) for token in one.token_hashes}
    assert len(drawn) > 8 * 80 - 2 * 48 - 10  # what bled is in two of them
    beats = made()
    assert beats.records(0.0) == []
    for record in beats.records(float(EVERY_S)):
        check(record)
        check_sequence(record)


def test_it_is_dated_by_the_records_beside_it_and_never_ahead_of_the_clock() -> None:
    time = StreamTime()
    assert time.at_ms(0.0, wall_ms=WALL_MS) == WALL_MS
    time.hear(1_000_000, now_s=10.0)  # a log of long ago is being read
    assert time.at_ms(10.5, wall_ms=WALL_MS) == 1_000_500
    time.hear(900_000, now_s=11.0)  # an earlier record takes nothing back
    assert time.at_ms(12.0, wall_ms=WALL_MS) == 1_002_000
    time.hear(WALL_MS - 1_000, now_s=13.0)
    assert time.at_ms(60.0, wall_ms=WALL_MS) == WALL_MS
    (first, *_, last) = due(made(time), 20.0)
    assert (first.started_at_ms, last.ended_at_ms) == (WALL_MS - 3_000, WALL_MS)


def test_a_worker_finds_it_and_counts_it_nowhere() -> None:
    stream = Stream()
    handler = stream.handler()
    runner = stream.runner(handler)
    runner.start()
    stream.send([*beat(10), *beat(20)])
    runner.finish()
    found = stream.findings()
    assert [one.rule for one in found] == [RULE, RULE]
    assert {one.severity for one in found} == {Severity.INFO}
    assert [sent_ms(one.sink.request_id) for one in found] == [10_000, 20_000]
    assert found[0].evidence.unexplained_tokens == 48
    assert not stream.sent(TOPICS.requests)
    totals = handler.totals().stats
    assert (totals.tokens, totals.responses, totals.response_shingles) == (0, 0, 0)
    assert (totals.unexplained_shingles, totals.findings) == (0, 0)
    assert handler.memory.seen.since_ms is None, "nothing is learned of them"
    assert handler.tally.tokens == 0
    assert not handler.tally.sequences


def test_a_real_bleed_beside_it_is_told_and_counted_as_ever() -> None:
    stream = Stream()
    handler = stream.handler()
    runner = stream.runner(handler)
    runner.start()
    secret = text(1, 30)
    stream.send([prompt("a", "1", 0, secret), *beat(4), response("b", "2", 5, secret)])
    runner.finish()
    assert {one.rule for one in stream.findings()} == {RULE, "BW001"}
    assert handler.totals().stats.responses == 1
    assert handler.totals().stats.findings == 1


@pytest.mark.parametrize("tenant", [SOURCE, SINK, RESERVED, f"{RESERVED}-mine"])
def test_no_customer_can_have_the_name(tenant: str) -> None:
    keys = Secret(bytes(range(32))).keys()
    coverage = Coverage()
    door = Door(
        TokenTable(keys.hash_key, key_id=keys.key_id),
        Tenancy(TenancySettings()),
        ChatTemplate(ChatTemplateSettings()),
        coverage,
    )

    def request(**more: Any) -> RawRequest:
        return RawRequest(request_id="r", started_at_ms=1, identity={"tenant": tenant}, **more)

    assert door.sequences(request(prompt_ids=[1, 2], response_ids=[3])) == []
    assert door.row(request()) is None
    assert coverage.broken_by_reason == {"reserved_tenant": 2}
