"""The blast radius counts what counting row by row does, for every scope."""

import random
from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from detector.finding import Finding
from exporters.store.blast_radius import Scope, blast_radius
from exporters.store.database import Database
from exporters.store.recording import record_findings
from exporters.store.request_rows import StoredRequest, put_requests
from tests.bench.blast_radius import measure
from tests.store.made import SETTINGS, found

ROWS = 600
CHANCE = random.Random(7)


def row(number: int) -> StoredRequest:
    return StoredRequest(
        tenant=CHANCE.choice(["acme", "globex", "initech", "umbrella"]),
        request_id=f"r{number % 500}",
        kv_pool=CHANCE.choice("ab"),
        engine=CHANCE.choice(["e1", "e2"]),
        model="m",
        started_at_ms=CHANCE.randrange(100_000),
        prompt_tokens=CHANCE.choice([None, *range(0, 2000, 100)]),
    )


REQUESTS = [row(number) for number in range(ROWS)]

FINDINGS: list[Finding] = [
    found(
        f"f{number}",
        one.started_at_ms / 1000,
        pool=one.kv_pool,
        rule=CHANCE.choice(["BW101", "BW103", "BW001"]),
        sink=one.tenant,
        request=one.request_id,
    )
    for number, one in enumerate(REQUESTS[:80])
]


def fill(database: Database) -> None:
    with database.write() as connection:
        put_requests(connection, REQUESTS)
        record_findings(connection, FINDINGS, SETTINGS, now_ms=0)


def brute_force(scope: Scope) -> dict[str, int]:
    contradicted = {
        (one.sink.tenant, one.sink.request_id)
        for one in FINDINGS
        if one.rule.startswith("BW1") and one.kv_pool == scope.kv_pool
    }
    return Counter(
        one.tenant
        for one in REQUESTS
        if one.kv_pool == scope.kv_pool
        and scope.from_ms <= one.started_at_ms <= scope.until_ms
        and (
            scope.longer_than is None
            or (one.prompt_tokens is not None and one.prompt_tokens > scope.longer_than)
        )
        and (scope.engine is None or one.engine == scope.engine)
        and (not scope.contradicted or (one.tenant, one.request_id) in contradicted)
    )


SCOPES = st.builds(
    Scope,
    kv_pool=st.sampled_from(["a", "b", "none"]),
    from_ms=st.integers(-1, 60_000),
    until_ms=st.integers(40_000, 100_001),
    longer_than=st.none() | st.integers(0, 2000),
    contradicted=st.booleans(),
    engine=st.none() | st.sampled_from(["e1", "e2", "none"]),
)


def test_it_is_exact_on_both_databases(database: Database) -> None:
    fill(database)
    scopes = [
        Scope("a", 0, 100_000),
        Scope("a", 10_000, 50_000, longer_than=1000, engine="e1"),
        Scope("b", 0, 100_000, contradicted=True),
    ]
    with database.read() as connection:
        for scope in scopes:
            found_now = blast_radius(connection, scope)
            assert found_now.tenants == brute_force(scope)
            assert found_now.requests == sum(found_now.tenants.values()) > 0


def test_it_is_exact_for_every_scope(new_store: Callable[[], Database]) -> None:
    database = new_store()
    fill(database)

    @settings(max_examples=100, deadline=None)
    @given(scope=SCOPES)
    def check(scope: Scope) -> None:
        with database.read() as connection:
            assert blast_radius(connection, scope).tenants == brute_force(scope)

    check()


def test_the_bench_asks_and_is_answered() -> None:
    told: list[str] = []
    measure(2_000, told.append)
    counts = {line.split("|")[1].strip(): line.split("|")[2].strip() for line in told[1:]}
    assert counts["30 days"] == "2,000"
    assert counts["30 days, one engine"] == "250"


def test_tenants_with_most_requests_come_first(database: Database) -> None:
    fill(database)
    with database.read() as connection:
        counts = list(blast_radius(connection, Scope("a", 0, 100_000)).tenants.values())
    assert counts == sorted(counts, reverse=True)
