"""A pool on a bad day, as an operator would find it: one incident of every kind of evidence."""

import msgspec

from detector.finding import (
    Confidence,
    Evidence,
    Finding,
    Party,
    Run,
    Severity,
    Thresholds,
)
from exporters.http import acts
from exporters.store import look_backs
from exporters.store.look_backs import Source, StoredLookBack
from exporters.store.request_rows import StoredRequest
from exporters.store.verdicts import Verdict
from tests.http.kit import NOW_MS, Served
from tests.store.made import about_engine, found

POOL = "prod-eu-1"
HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">{{7*7}}'
"""A name that is no name; it must be seen as it is, and do nothing."""

BEGIN_MS = NOW_MS - 600_000


def content(name: str, at_s: float, *, sink: str = "globex", source: str = "acme") -> Finding:
    """Return a finding of three runs, one of which something explains."""
    ended_ms = BEGIN_MS + int(at_s * 1000)
    runs = (
        Run(source_start=310, sink_start=40, length=96, unexplained=96),
        Run(source_start=1_250, sink_start=420, length=41, unexplained=38),
        Run(source_start=12, sink_start=700, length=14, unexplained=0),
    )
    asked = Party(
        tenant=source,
        request_id=f"cmpl-{name}-source",
        kind="prompt",
        started_at_ms=ended_ms - 95_000,
        ended_at_ms=ended_ms - 94_000,
        prompt_tokens=1_900,
    )
    received = Party(
        tenant=sink,
        request_id=f"cmpl-{name}",
        kind="response",
        started_at_ms=ended_ms - 8_000,
        ended_at_ms=ended_ms,
        prompt_tokens=220,
    )
    limits = Thresholds(low=10, medium=12, high=16, density_ratio=1.0, learning=False)
    return Finding(
        id=name,
        rule="BW001",
        severity=Severity.CRITICAL,
        confidence=Confidence.HIGH,
        kv_pool=POOL,
        engine="sglang-decode-3",
        model="llama-3.3-70b",
        observed_at_ms=ended_ms,
        detected_at_ms=ended_ms + 900,
        sink=received,
        source=asked,
        other_sources=(msgspec.structs.replace(asked, request_id=f"cmpl-{name}-other"),),
        evidence=Evidence(
            runs=runs,
            matched_tokens=151,
            unexplained_tokens=134,
            sink_tokens=812,
            containment=0.186,
            rarity=0.97,
            reasons={"own_prompt": 12, "common": 5, "template": 3},
            thresholds=limits,
        ),
        explanation=f"The response to {sink} request cmpl-{name} repeats 134 tokens of the prompt "
        f"of {source} request cmpl-{name}-source, and nothing explains them.",
        runtime={
            "clear_failure": "3 failures, first 6.1 s before the response",
            "unreleased_kv": "41,200 tokens unreleased",
        },
    )


def contradiction(name: str, at_s: float) -> Finding:
    """Return a finding of a request that was refused and answered."""
    one = found(name, 0, pool=POOL, rule="BW101", sink="initech", source="initech")
    at_ms = BEGIN_MS + int(at_s * 1000)
    party = msgspec.structs.replace(one.sink, started_at_ms=at_ms - 4_000, ended_at_ms=at_ms)
    return msgspec.structs.replace(
        one,
        observed_at_ms=at_ms,
        detected_at_ms=at_ms + 700,
        sink=party,
        source=party,
        explanation="The engine refused initech request "
        f"{party.request_id} for its length, and yet it was answered.",
        runtime={"prompt_tokens": "284,937", "limit_tokens": "131,072"},
    )


def play(api: Served) -> str:
    """Fill the store of an api and return the id of the incident."""
    engine = msgspec.structs.replace(
        about_engine("engine1", 0, rule="BW202", pool=POOL),
        observed_at_ms=BEGIN_MS + 86_000,
        explanation="Engine sglang-decode-3 failed to clear KV memory 3 times.",
        runtime={"clear_failures": "3"},
    )
    moved = {
        side: msgspec.structs.replace(
            getattr(engine, side), started_at_ms=BEGIN_MS + 80_000, ended_at_ms=BEGIN_MS + 86_000
        )
        for side in ("sink", "source")
    }
    api.record(
        content("bleed1", 120),
        content("bleed2", 150, sink="umbrella", source=HOSTILE),
        contradiction("refused1", 100),
        msgspec.structs.replace(engine, **moved),
    )
    with api.database.write() as connection:
        look_backs.put(connection, looked_back())
    api.request(*rows())
    acts.give_verdict(api.parts, "bleed1", Verdict.CONFIRMED, by="walt")
    with api.database.read() as connection:
        found_one = look_backs.look_backs_of(connection, ["refused1"])
    assert found_one
    return "inc-bleed1"


def looked_back() -> StoredLookBack:
    """Return what was looked back for: two probable sources."""
    sources = tuple(
        Source(
            party=Party(
                tenant=tenant,
                request_id=f"cmpl-old-{tenant}",
                kind="prompt",
                started_at_ms=BEGIN_MS - hours * 3_600_000,
                ended_at_ms=BEGIN_MS - hours * 3_600_000,
            ),
            engine="sglang-prefill-1",
            confidence="high",
            unexplained_tokens=tokens,
            runs=(Run(source_start=4, sink_start=9, length=tokens, unexplained=tokens),),
        )
        for tenant, hours, tokens in (("hooli", 3, 212), ("acme", 7, 31))
    )
    return StoredLookBack(
        finding_id="refused1", at_ms=NOW_MS, sources=sources, sequences=41_822, tokens=21_000_000
    )


def rows() -> list[StoredRequest]:
    """Return 900 requests of 40 tenants, more of them when it went wrong."""
    names = [f"tenant-{number:02}" for number in range(38)] + ["=cmd()", HOSTILE]
    return [
        StoredRequest(
            tenant=names[number * 7 % len(names)],
            request_id=f"row-{number}",
            kv_pool=POOL,
            engine="sglang-decode-3",
            model="llama-3.3-70b",
            started_at_ms=BEGIN_MS - 40_000 + (number * number * 240_000) // (900 * 900),
            prompt_tokens=number,
        )
        for number in range(900)
    ]
