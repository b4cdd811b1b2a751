"""The audit file of leases: not for all, rotated at any time, whole after a cut, read back."""

import stat
from pathlib import Path

import pytest

from ingest.kv_lease.events import Event, Owner
from ingest.kv_lease.journal import Journal, read_journal
from ingest.kv_lease.recovery import left_open
from tests.unit.lease_station import Clock, Crash, Engine

ACME = Owner("acme", "r1", 1_795_000_000_000)


def event(kind: str, request: str = "r", block: str = "b", detail: str | None = None) -> Event:
    return Event(
        kind=kind, engine="e", kv_pool="p", at_ms=1, tenant="acme", request_id=request,
        created_at_ms=1, block=block, detail=detail,
    )  # fmt: skip


def test_events_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    journal = Journal(path)
    written = [event("allocated"), event("released", detail="finished")]
    journal(written[0])
    path.rename(tmp_path / "audit.jsonl.1")
    journal(written[1])
    assert list(read_journal(tmp_path / "audit.jsonl.1")) == written[:1]
    assert list(read_journal(path)) == written[1:]
    assert stat.S_IMODE(path.stat().st_mode) & ~0o640 == 0


def test_a_line_that_was_cut_short_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(event("allocated").line() + b'{"schema":"engine-event/1","ki')
    Journal(path)(event("released"))
    assert [one.kind for one in read_journal(path)] == ["allocated", "released"]


@pytest.mark.parametrize("line", [b"[]", b"{}", b"nonsense", b'{"schema":"engine-event/1"}', b""])
def test_what_is_no_event_is_passed_over(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(line + b"\n" + event("allocated").line())
    assert len(list(read_journal(path))) == 1


def test_a_journal_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Journal(tmp_path / "absent" / "audit.jsonl")(event("allocated"))


def test_a_crash_leaves_what_the_next_process_invalidates() -> None:
    one = Engine("e", Clock())
    one.book.lease(ACME, "held")
    with one.book.lease(ACME, "kept") as lease:
        lease.keep(1_000)
    one.memory |= {"held": ACME, "kept": ACME, "not ours": ACME}
    one.crash_at = 2
    dying = one.book.lease(ACME, "dying")
    one.memory["dying"] = ACME
    with pytest.raises(Crash):
        dying.reject()
    one.restart(memory_survives=True)
    assert one.memory == {"not ours": ACME}
    assert one.book.open_blocks == 0
    released = [told for told in one.events if told.detail == "crashed"]
    assert len(released) == 3
    assert left_open(one.events, "e") == {}


def test_memory_that_is_gone_is_told_as_released() -> None:
    one = Engine("e", Clock())
    one.book.lease(ACME, "held")
    one.restart(memory_survives=False)
    assert [told.detail for told in one.events] == [None, "crashed"]


def test_who_still_holds_a_block_is_named_not_who_was_last_to_begin() -> None:
    events = [
        event("allocated", "r1"),
        event("released", "r1", detail="kept"),
        event("reused", "r2"),
        event("reused", "r3"),
        event("released", "r3", detail="shared"),
    ]
    assert left_open(events, "e") == {"b": Owner("acme", "r2", 1)}
    assert left_open(events, "another engine") == {}
