"""A store with one simulated incident: acme's prompt in an answer to globex, and who ran beside."""

from contextlib import closing
from pathlib import Path

import msgspec

from detector.finding import Finding
from exporters.store import look_backs
from exporters.store.database import open_store
from exporters.store.look_backs import Source, StoredLookBack
from exporters.store.recording import record_findings
from exporters.store.request_rows import StoredRequest, put_requests
from exporters.store.settings import StoreSettings
from tests.store.made import SETTINGS, found

LIMIT = 681_280
SECRET = "the launch code is swordfish"


def findings() -> list[Finding]:
    """A bleed, a contradiction about the same request, and one about another tenant."""
    bleed = found("bleed", 1000, pool="long", sink="globex", source="acme")
    wide = found("wide", 1010, pool="long", rule="BW102", sink="globex", request="req-bleed")
    other = found("other", 1020, pool="long", rule="BW101", sink="initech", source="initech")
    prompt = msgspec.structs.replace(bleed.source, kind="prompt")
    return [msgspec.structs.replace(bleed, source=prompt, explanation=SECRET), wide, other]


def requests() -> list[StoredRequest]:
    """Requests around the incident, long ones among them, and one long before it."""
    listed = [("acme", "src-bleed", 990, 700_000), ("globex", "req-bleed", 999, 800_000),
              ("initech", "req-other", 1019, 900), ("umbrella", "=cmd()", 1005, 5),
              ("umbrella", "early", 100, 900_000)]  # fmt: skip
    return [
        StoredRequest(
            tenant=tenant,
            request_id=name,
            kv_pool="long",
            engine="engine-1",
            model="m",
            started_at_ms=at_s * 1000,
            prompt_tokens=tokens,
        )
        for tenant, name, at_s, tokens in listed
    ]


def fill(folder: Path) -> tuple[str, str]:
    """Make the store; return its URL and the id of the incident."""
    url = f"sqlite:///{folder}/store.db"
    with closing(open_store(StoreSettings(url=url))) as database, database.write() as connection:
        put_requests(connection, requests())
        recorded = record_findings(connection, findings(), SETTINGS, now_ms=2_000_000)
        traced = found("traced", 900, pool="long", source="umbrella").source
        source = Source(
            party=traced, engine="engine-1", confidence="high", unexplained_tokens=30, runs=()
        )
        looked = StoredLookBack(finding_id="wide", at_ms=2_000_000, sources=(source,))
        look_backs.put(connection, looked)
    return url, recorded.changes[-1].incident.id
