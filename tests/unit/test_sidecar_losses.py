"""A sidecar reports what it lost: each loss once, by engine, every few seconds and no oftener."""

from collections import Counter
from pathlib import Path
from typing import Any

from ingest.opening import open_records
from ingest.schema_records import EngineEvent, EventKind
from ingest.sidecar_beside import BesideHealth, EngineHealth, KvEventsHealth, PushHealth
from ingest.sidecar_health import LogHealth, SidecarHealth
from ingest.sidecar_losses import REPORT_S, LossReports, Place
from ingest.spool_counts import SpoolCounts
from tests.unit.sidecars import Station

OWN = Place("sidecar", "sidecar")


def log(**more: Any) -> LogHealth:
    given: dict[str, Any] = {
        "name": "/logs/a.log", "known": True, "behind_bytes": 0, "lines": 0, "requests": 0,
        "repeats": 0, "unmapped": 0, "broken": {}, "ignored": {}, "incomplete": {},
    }  # fmt: skip
    return LogHealth(**(given | more))


def health(*logs: LogHealth, **more: Any) -> SidecarHealth:
    given: dict[str, Any] = {
        "ok": True, "at_ms": 0, "reasons": (), "records": {}, "tokens": 0, "refused": {},
        "unsafe_bytes": 0, "failed_sends": 0, "discarded_bytes": 0, "logs": logs,
    }  # fmt: skip
    return SidecarHealth(**(given | more))


class Looked:
    """A sidecar that is looked at; `now` is its last look."""

    def __init__(self) -> None:
        self.now: SidecarHealth | None = None
        self.reports = LossReports(
            lambda: self.now, own=OWN, place_of=lambda name: Place(name, "p"), now_ms=lambda: 77
        )

    def told(self, now_s: float) -> dict[tuple[str, str], int]:
        """Return what is reported by engine and cause."""
        made = self.reports(now_s)
        assert all(one.kind is EventKind.BLIND and one.at_ms == 77 for one in made)
        return {(one.engine, one.detail or ""): one.count or 0 for one in made}


def test_every_loss_is_told_once_and_growth_by_its_amount() -> None:
    looked = Looked()
    assert looked.told(0.0) == {}
    looked.now = health(log(broken={"file_gone": 2, "json_unreadable": 5}, unmapped=1))
    first = {
        ("/logs/a.log", "log_lost"): 2,
        ("/logs/a.log", "log_unreadable"): 5,
        ("/logs/a.log", "tenant_unknown"): 1,
    }
    assert looked.told(1.0) == first
    looked.now = health(log(broken={"file_gone": 3, "json_unreadable": 5}, unmapped=1))
    assert looked.told(1.0 + REPORT_S - 0.1) == {}, "not so soon again"
    assert looked.told(1.0 + REPORT_S) == {("/logs/a.log", "log_lost"): 1}
    assert looked.told(1.0 + 2 * REPORT_S) == {}


def test_every_kind_of_loss_has_its_cause() -> None:
    looked = Looked()
    spool = SpoolCounts(0, 0, 0, 0, {"a": 4, "b": 1}, 0, None, 0, 99)
    beside = BesideHealth(
        push=PushHealth(9, 2, {"wrong_type": 3}, {"response.text_only": 6}, 0),
        kv_events=(KvEventsHealth("kv", "p", {"frames": 9, "lost": 7}, {"undecodable": 8}, {}),),
        engines=(EngineHealth("e", "p", 12), EngineHealth("well", "p", 0)),
        dropped_samples=11,
    )
    looked.now = health(
        log(incomplete={"prompt.not_logged": 3}, ignored={"unknown_format": 2, "health": 5}),
        discarded_bytes=10, refused={"too_large": 13}, spool=spool, beside=beside,
    )  # fmt: skip
    assert looked.told(0.0) == {
        ("/logs/a.log", "ids_missing"): 3,
        ("/logs/a.log", "log_unreadable"): 2,
        ("sidecar", "pipe_discarded"): 10,
        ("sidecar", "records_refused"): 13,
        ("sidecar", "samples_dropped"): 11,
        ("sidecar", "spool_dropped"): 5,
        ("sidecar", "spool_damaged"): 99,
        ("sidecar", "ids_missing"): 6,
        ("sidecar", "tenant_unknown"): 2,
        ("sidecar", "push_refused"): 3,
        ("kv", "kv_events_lost"): 7,
        ("kv", "kv_events_unreadable"): 8,
        ("e", "engine_unseen"): 12,
    }


def test_a_running_sidecar_sends_its_reports_to_the_broker(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text('{"request_id": broken\n' * 20 + '{"nothing": "of use"}\n')
    station = Station(tmp_path, str(path), format="jsonl")
    running = station.start()
    station.turns(2)
    running.board.look_again()
    station.turns(3)
    station.stop()
    events = [
        one
        for message in station.messages(station.topics.engine_events)
        for one in open_records(EngineEvent, message).records
    ]
    told = Counter({(one.engine, one.detail): one.count for one in events})
    assert told["engine-0", "log_unreadable"] >= 20
