"""Contradictions in the store are looked back for, and what is found stands on their page."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from detector.api.looking_back import LOOK_S, LookingBack
from detector.errors import BrokerError
from detector.finding import Finding
from exporters.store.look_backs import StoredLookBack, look_backs_of
from ingest.broker import Reader
from tests.http.kit import READER, Served
from tests.store.made import found
from tests.streams.process import until
from tests.unit.test_trace_stream import SETTINGS, SINK, contradiction, retained
from tests.unit.wire import RING


@contextmanager
def working(
    api: Served, open_reader: Callable[[], Reader], now_s: Callable[[], float]
) -> Iterator[LookingBack]:
    """Give what looks back in the background of a store, by a clock of the test's own."""
    looking = LookingBack(
        SETTINGS,
        api.database,
        open_reader=open_reader,
        ring=lambda: RING,
        now_ms=lambda: SINK.ended_at_ms,
        clock=now_s,
    )
    looking.look_back.start()
    try:
        yield looking
    finally:
        assert looking.look_back.close(30.0)


def known(api: Served, name: str) -> list[StoredLookBack]:
    with api.database.read() as connection:
        return look_backs_of(connection, [name])


def told(name: str, rule: str = "BW101") -> Finding:
    """Return a finding about the response that an old prompt has bled into."""
    about = msgspec.structs.replace(contradiction(rule), id=name)
    return msgspec.structs.replace(about, detected_at_ms=SINK.ended_at_ms)


def test_the_sources_of_a_contradiction_are_found_stored_and_shown(api: Served) -> None:
    now_s = 0.0
    stream = retained()
    with working(api, stream.broker.reader, lambda: now_s) as looking:
        looking.turn()
        api.record(told("c1"), found("f1", 10))
        looking.turn()
        assert known(api, "c1") == []
        now_s += LOOK_S
        looking.turn()
        until(lambda: bool(known(api, "c1")))
        (one,) = known(api, "c1")
        assert [(at.party.request_id, at.unexplained_tokens) for at in one.sources] == [("old", 40)]
        assert known(api, "f1") == []
    with api.client(READER) as client:
        whole = client.get("/v1/findings/c1").json()
        incident = client.get(f"/v1/incidents/{whole['incident_id']}").json()
        assert [at["finding_id"] for at in incident["look_backs"]] == ["c1"]
        page = client.get("/findings/c1").text
        assert "Looked back for sources" in page
        assert "40 tokens" in page


def test_what_fails_is_told_on_the_page_and_done_once(api: Served) -> None:
    now_s, opened = 0.0, 0

    def away() -> Reader:
        nonlocal opened
        opened += 1
        raise BrokerError("no broker answers", where="kafka:9092", hint="start it")

    api.record(told("c1"))
    with working(api, away, lambda: now_s) as looking:
        for _ in range(3):
            looking.turn()
            until(lambda: bool(known(api, "c1")))
            now_s += LOOK_S
    assert opened == 1
    assert "no broker answers" in (known(api, "c1")[0].problem or "")
    with api.client(READER) as client:
        assert "No sources can be named" in client.get("/findings/c1").text
