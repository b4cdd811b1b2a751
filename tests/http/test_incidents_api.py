"""What programs read and change: lists and pages, incidents, verdicts, silences, holds, erasure."""

import json

import msgspec
import pytest

from exporters.http.acts import HOLD_MARGIN_MS
from exporters.incidents.model import ChangeKind, State
from exporters.store import findings as finding_rows
from exporters.store import incidents as incident_rows
from exporters.store.retention import forget
from exporters.store.settings import DAY_MS, StoreRetentionSettings
from tests.http.kit import NOW_MS, READER, WRITER, Served, row
from tests.store.made import found
from tests.unit.findings import SOURCE


def ids(answer: dict[str, object], kind: str = "findings") -> list[str]:
    listed = answer[kind]
    assert isinstance(listed, list)
    return [one["finding"]["id"] if kind == "findings" else one["id"] for one in listed]


def test_pages_of_findings_are_whole_and_without_repeats(api: Served) -> None:
    api.record(*(found(f"f{number:02}", number % 7) for number in range(30)))
    expected = sorted((number % 7, f"f{number:02}") for number in range(30))[::-1]
    with api.client(READER) as client:
        queries: tuple[dict[str, str], ...] = (
            {},
            {"tenant": "acme"},
            {"rule": "BW001", "severity": "high"},
        )
        for asked in queries:
            seen: list[str] = []
            cursor: str | None = None
            while True:
                params = {**asked, "limit": "7"} | ({"cursor": cursor} if cursor else {})
                answer = client.get("/v1/findings", params=params).json()
                seen += ids(answer)
                cursor = answer["next"]
                if cursor is None:
                    break
            assert seen == [name for _, name in expected]


def test_findings_are_filtered_by_either_tenant_rule_pool_time_and_verdict(api: Served) -> None:
    api.record(
        found("f1", 10, sink="a", source="b"),
        found("f2", 20, sink="b", source="c", pool="other"),
        found("f3", 30, rule="BW101", sink="c", source="c"),
    )
    with api.client(WRITER) as client:
        client.put("/v1/findings/f2/verdict", json={"verdict": "false_positive"})

        def asked(**params: str | int) -> list[str]:
            return ids(client.get("/v1/findings", params=params).json())

        assert asked(tenant="b") == ["f2", "f1"]
        assert asked(tenant="B") == []
        assert asked(rule="BW101") == ["f3"]
        assert asked(kv_pool="other") == ["f2"]
        assert asked(since_ms=20_001, until_ms=20_001) == ["f2"]
        assert asked(verdict="false_positive") == ["f2"]
        assert asked(verdict="none") == ["f3", "f1"]
        assert asked(confidence="low") == []


def test_incidents_are_filtered_and_paged(api: Served) -> None:
    api.record(*(found(f"f{n}", 1_000 * n, pool=f"p{n % 2}", sink=f"t{n}") for n in range(6)))
    with api.client(WRITER) as client:
        client.post("/v1/incidents/inc-f0/resolve", json={"reason": "over"})

        def asked(**params: str | list[str]) -> list[str]:
            return ids(client.get("/v1/incidents", params=params).json(), "incidents")

        assert asked(state="resolved") == ["inc-f0"]
        assert len(asked(state=["open", "ongoing"])) == 5
        assert asked(tenant="t3") == ["inc-f3"]
        assert set(asked(kv_pool="p1")) == {"inc-f1", "inc-f3", "inc-f5"}
        assert len(asked(rule="BW001", severity="high")) == 6
        first = client.get("/v1/incidents", params={"limit": 4}).json()
        second = client.get("/v1/incidents", params={"cursor": first["next"]}).json()
        assert len(ids(first, "incidents") + ids(second, "incidents")) == 6
        assert second["next"] is None


def test_an_incident_is_taken_resolved_and_opened_again_and_its_log_says_by_whom(
    api: Served,
) -> None:
    api.record(found("f1", 10))
    with api.client(WRITER) as client:
        taken = client.post("/v1/incidents/inc-f1/acknowledge", json={"reason": "mine"}).json()
        assert (taken["acknowledged_by"], taken["state"]) == ("walt", "open")
        ended = client.post("/v1/incidents/inc-f1/resolve", json={}).json()
        assert ended["state"] == "resolved"
        assert client.post("/v1/incidents/inc-f1/resolve", json={}).status_code == 409
        api.record(found("f2", 12))
        whole = client.get("/v1/incidents/inc-f1").json()
    assert whole["incident"]["state"] == "reopened"
    told = [(one["kind"], one["by"], one["reason"]) for one in whole["changes"]]
    assert told[:3] == [
        ("opened", None, "first finding, of BW001"),
        ("acknowledged", "walt", "mine"),
        ("resolved", "walt", "resolved by walt"),
    ]
    assert [one["finding"]["id"] for one in whole["findings"]] == ["f1", "f2"]


def test_a_merged_incident_names_the_other_and_takes_no_change(api: Served) -> None:
    api.record(found("f1", 0), found("f2", 150), found("f3", 75))
    with api.client(WRITER) as client:
        assert client.get("/v1/incidents/inc-f2").json()["incident"]["merged_into"] == "inc-f1"
        refused = client.post("/v1/incidents/inc-f2/acknowledge", json={})
        assert refused.status_code == 409
        assert "inc-f1" in refused.json()["detail"]


def test_silences_are_made_listed_and_ended(api: Served) -> None:
    api.record(found("f1", 10))
    with api.client(WRITER) as client:
        one = client.post("/v1/incidents/inc-f1/silence", json={"minutes": 5}).json()
        assert one["about"]["incidents"] == ["inc-f1"]
        assert one["ends_at_ms"] - one["starts_at_ms"] == 300_000
        wide = client.post("/v1/silences", json={"kv_pools": ["prod-*"], "comment": "works"}).json()
        assert client.post("/v1/incidents/inc-no/silence", json={}).status_code == 404
        listed = client.get("/v1/silences").json()["silences"]
        assert {entry["id"] for entry in listed} == {one["id"], wide["id"]}
        assert client.delete(f"/v1/silences/{one['id']}").status_code == 204
        assert client.delete(f"/v1/silences/{one['id']}").status_code == 404


def test_verdicts_make_a_precision(api: Served) -> None:
    api.record(*(found(f"f{n}", n) for n in range(4)), found("c1", 9, rule="BW101"))
    with api.client(WRITER) as client:
        for name, verdict in {"f0": "confirmed", "f1": "false_positive", "c1": "confirmed"}.items():
            answer = client.put(f"/v1/findings/{name}/verdict", json={"verdict": verdict})
            assert answer.json() == {"finding_id": name, "verdict": verdict, "by": "walt"}
        client.put("/v1/findings/f2/verdict", json={"verdict": "confirmed"})
        client.put("/v1/findings/f2/verdict", json={"verdict": "none"})
        assert client.put("/v1/findings/no/verdict", json={"verdict": "none"}).status_code == 404
        listed = client.get("/v1/rules").json()
    of_rule = {one["id"]: one for one in listed["rules"]}
    assert (of_rule["BW001"]["findings"], of_rule["BW001"]["precision"]) == (4, 0.5)
    assert of_rule["BW202"]["precision"] is None
    assert listed["precision"] == pytest.approx(2 / 3)


def test_the_blast_radius_counts_by_tenant(api: Served) -> None:
    api.record(found("f1", 400))
    api.request(row(99), row(101), row(350, tenant="globex", prompt_tokens=9), row(401), row(402))
    with api.client(READER) as client:
        at = "/v1/incidents/inc-f1/blast-radius"
        answer = client.get(at).json()
        assert answer["tenants"] == [
            {"tenant": "acme", "requests": 1},
            {"tenant": "globex", "requests": 1},
        ]
        assert client.get(at, params={"until_ms": 401_000}).json()["requests"] == 3
        assert client.get(at, params={"longer_than": 8}).json()["requests"] == 1
        assert client.get(at, params={"since_ms": 2, "until_ms": 1}).status_code == 400
        saved = client.get("/incidents/inc-f1/blast-radius.csv")
        assert saved.headers["content-type"] == "text/csv; charset=utf-8"
        assert saved.text == "tenant,requests\r\nacme,1\r\nglobex,1\r\n"


def test_coverage_counts_by_pool(api: Served) -> None:
    api.request(row(1), row(2, flags=("response_unseen",)), row(3, pool="b", rejected_by="context"))
    with api.client(READER) as client:
        answer = client.get("/v1/coverage", params={"since_ms": 0, "until_ms": 9_000}).json()
        assert answer["pools"] == [
            {"kv_pool": "a", "requests": 2, "rejected": 0, "flags": {"response_unseen": 1}},
            {"kv_pool": "b", "requests": 1, "rejected": 1, "flags": {}},
        ]
        assert client.get("/v1/coverage", params={"since_ms": 0}).status_code == 400


def test_a_hold_keeps_rows_and_the_incident_until_it_is_released(api: Served) -> None:
    api.record(found("f1", 1_000))
    edge = HOLD_MARGIN_MS // 1000
    api.request(row(1_000 - edge), row(999 - edge), row(1_000 + edge))
    keep = StoreRetentionSettings(requests_ms=DAY_MS, incidents_ms=DAY_MS)
    with api.client(WRITER) as client:
        assert client.put("/v1/incidents/inc-f1/hold").status_code == 204
        assert client.get("/v1/incidents/inc-f1").json()["is_held"]
        with api.database.write() as connection:
            assert forget(connection, keep, now_ms=NOW_MS) == 1
        erased = client.post("/v1/erasures", json={"tenant": "acme"}).json()
        assert erased == {
            "requests": 0, "findings": 0, "incidents": 0, "held_requests": 2, "held_findings": 1,
        }  # fmt: skip
        assert client.delete("/v1/incidents/inc-f1/hold").status_code == 204
        with api.database.write() as connection:
            assert forget(connection, keep, now_ms=NOW_MS) == 2
        assert client.put("/v1/incidents/inc-no/hold").status_code == 404


def test_a_tenant_is_erased_from_the_whole_store(api: Served) -> None:
    gone = "umbrella corp"
    tie = msgspec.structs.replace(SOURCE, tenant=gone)
    api.record(
        found("f1", 10, sink=gone, explanation=f"It names {gone}."),
        found("f2", 20, other_sources=(tie, SOURCE)),
        found("f3", 9_000, source=gone),
    )
    api.request(row(1, tenant=gone), row(2))
    with api.client(WRITER) as client:
        client.post("/v1/silences", json={"tenants": [gone]})
        erased = client.post("/v1/erasures", json={"tenant": gone}).json()
        assert (erased["requests"], erased["findings"], erased["incidents"]) == (1, 2, 1)
        left = client.get("/v1/incidents/inc-f1").json()["incident"]
        assert (left["finding_count"], left["tenants"]) == (1, ["acme", "globex"])
        assert client.get("/v1/incidents/inc-f3").status_code == 404
        assert client.post("/v1/erasures", json={"tenant": gone}).json()["findings"] == 0
    with api.database.read() as connection:
        everything = [
            msgspec.to_builtins(
                [one.observed for one in finding_rows.findings_of(connection, name)]
            )
            for name in ("inc-f1", "inc-f3")
        ]
        raw = connection.connection.iterdump()
        dumped = "\n".join(raw)
        kinds = [one.kind for one in incident_rows.changes_of(connection, "inc-f1")]
        states = incident_rows.count_by_state(connection)
    assert gone not in json.dumps(everything)
    assert gone not in dumped
    assert ChangeKind.OPENED in kinds
    assert states[State.ONGOING] == 1
