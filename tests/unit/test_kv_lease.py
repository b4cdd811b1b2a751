"""KV leases: what attaches, what is verified, what ends them, and what is written down."""

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ingest.kv_lease.book import LEASE_MS, Book
from ingest.kv_lease.errors import (
    BlockTakenError,
    KvRefusedError,
    LeaseEndedError,
    ReuseRefusedError,
)
from ingest.kv_lease.events import Event, Owner
from ingest.kv_lease.gate import Gate
from ingest.kv_lease.journal import read_journal
from ingest.kv_lease.lease import End, Lease
from ingest.kv_lease.recovery import HOLDS_ON
from ingest.kv_lease.tags import BlockTagger
from ingest.schema import Encoding, decode
from ingest.schema_records import EngineEvent
from tests.content.tree import ROOT
from tests.unit.lease_station import KEY, Clock, Engine, FaultError

ACME = Owner("acme", "r1", 1_795_000_000_000)
GLOBEX = Owner("globex", "r2", 1_795_000_000_001)

LONELY = """
import sys
sys.path[:] = [one for one in sys.path if "site-packages" not in one] + [sys.argv[1]]
before = set(sys.modules)
import kv_lease.book, kv_lease.gate, kv_lease.journal
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(loaded - set(sys.stdlib_module_names)))
"""


def station() -> Engine:
    return Engine("decode-0", Clock())


def kinds(engine: Engine) -> list[tuple[str, str | None]]:
    return [(one.kind, one.detail) for one in engine.events]


def test_the_folder_works_alone_with_nothing_but_the_standard_library(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "ingest" / "kv_lease", tmp_path / "kv_lease")
    command = [sys.executable, "-I", "-S", "-c", LONELY, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "['kv_lease']\n"


def test_a_lease_that_is_left_in_order_invalidates_its_block_once() -> None:
    one = station()
    with one.book.lease(ACME, "page 7") as lease:
        one.memory["page 7"] = ACME
        label = lease.transfer()
    assert label == {
        "tenant": "acme",
        "request_id": "r1",
        "created_at_ms": ACME.created_at_ms,
        "expires_at_ms": Clock().ms + LEASE_MS,
    }
    assert not one.memory
    assert kinds(one) == [("allocated", None), ("transferred", None), ("released", "finished")]
    assert {one.block for one in one.events} == {BlockTagger(KEY, "decode-0").tag("page 7")}
    with pytest.raises(LeaseEndedError):
        lease.transfer()


@pytest.mark.parametrize(
    ("fault", "kind", "detail"),
    [
        (FaultError, "aborted", "exception"),
        (TimeoutError, "timed_out", "timed_out"),
        (asyncio.CancelledError, "aborted", "cancelled"),
        (KeyboardInterrupt, "aborted", "cancelled"),
        (GeneratorExit, "aborted", "cancelled"),
    ],
)
def test_whatever_goes_wrong_invalidates_also_what_was_to_be_kept(
    fault: type[BaseException], kind: str, detail: str
) -> None:
    one = station()
    lease = one.book.lease(ACME, "b")
    one.memory["b"] = ACME
    lease.keep(1_000)
    with pytest.raises(fault), lease:
        raise fault
    assert not one.memory
    assert kinds(one)[1:] == [(kind, detail), ("released", detail)]


def test_a_task_that_is_cancelled_or_times_out_leaves_nothing() -> None:
    one = station()

    async def request(block: str) -> None:
        with one.book.lease(ACME, block):
            one.memory[block] = ACME
            await asyncio.Event().wait()

    async def both() -> None:
        task = asyncio.create_task(request("a"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(request("b"), 0.001)

    asyncio.run(both())
    assert not one.memory
    assert one.book.open_blocks == 0


def test_past_its_deadline_a_lease_ends_wherever_it_is_looked_at() -> None:
    clock = Clock()
    one = Engine("e", clock)
    for use in (Lease.check, Lease.transfer, Lease.reject, Lease.__enter__):
        lease = one.book.lease(ACME, "b", for_ms=10)
        clock.ms += 10
        with pytest.raises(LeaseEndedError):
            use(lease)
        assert one.book.open_blocks == 0
    with pytest.raises(LeaseEndedError), one.book.lease(ACME, "b", for_ms=10):
        clock.ms += 10  # and whoever has finished too late has not finished
    assert one.book.open_blocks == 0
    stuck = one.book.lease(ACME, "b", for_ms=10)
    clock.ms += 10
    one.book.sweep()
    assert stuck.ended == "timed_out"
    assert one.book.open_blocks == 0


def test_a_rejection_invalidates_at_once() -> None:
    one = station()
    with one.book.lease(ACME, "b") as lease:
        one.memory["b"] = ACME
        lease.reject()
        assert not one.memory
    assert kinds(one)[1:] == [("rejected", "rejected"), ("released", "rejected")]


def kept(clock: Clock, ttl_ms: int = 1_000) -> Engine:
    one = Engine("e", clock)
    with one.book.lease(ACME, "b") as lease:
        one.memory["b"] = ACME
        lease.keep(ttl_ms)
    return one


def test_a_kept_block_is_reused_by_its_tenant_and_by_several_at_once() -> None:
    clock = Clock()
    one = kept(clock)
    later = [Owner("acme", f"later {number}", clock.ms) for number in range(2)]
    with one.book.reuse(later[0], "b"), one.book.reuse(later[1], "b"):
        assert one.memory == {"b": ACME}
        with pytest.raises(BlockTakenError):
            one.book.lease(GLOBEX, "b")
    assert one.memory
    clock.ms += 1_000
    one.book.sweep()
    assert not one.memory
    assert kinds(one)[-1] == ("released", "expired")


@pytest.mark.parametrize(
    ("user", "block", "wait_ms", "reason"),
    [
        (GLOBEX, "b", 0, "tenant_differs"),
        (ACME, "b", 1_000, "past_ttl"),
        (ACME, "other", 0, "unknown"),
    ],
)
def test_reuse_is_refused(user: Owner, block: str, wait_ms: int, reason: str) -> None:
    clock = Clock()
    one = kept(clock)
    before = len(one.events)
    clock.ms += wait_ms
    with pytest.raises(ReuseRefusedError) as refused:
        one.book.reuse(user, block)
    assert refused.value.reason == reason
    assert one.book.counts == {reason: 1}
    assert len(one.events) == before
    assert "acme" not in str(refused.value)


def test_what_was_not_approved_or_failed_under_one_user_is_not_reused() -> None:
    one = kept(Clock())
    good, bad = (one.book.reuse(Owner("acme", name, 1), "b") for name in ("good", "bad"))
    with pytest.raises(FaultError), bad:
        raise FaultError
    with pytest.raises(ReuseRefusedError) as refused:
        one.book.reuse(ACME, "b")
    assert refused.value.reason == "not_approved"
    assert one.memory
    with good:
        pass
    assert not one.memory
    assert kinds(one)[-2:] == [("released", "shared"), ("released", "exception")]


def test_an_allocation_invalidates_what_was_cached_in_its_place() -> None:
    one = kept(Clock())
    with one.book.lease(GLOBEX, "b"):
        assert not one.memory
    assert ("released", "evicted") in kinds(one)


def test_what_cannot_be_invalidated_is_not_given_out_and_tried_again() -> None:
    one = station()
    one.fails_to_clear = True
    with one.book.lease(ACME, "b"):
        one.memory["b"] = ACME
    assert kinds(one)[-1] == ("clear_failed", "invalidate")
    one.fails_to_clear = True
    with pytest.raises(BlockTakenError):
        one.book.lease(GLOBEX, "b")
    one.book.sweep()
    assert not one.memory
    assert one.book.counts["clear_failed"] == 2


def test_without_a_record_nothing_begins_and_everything_ends() -> None:
    events: list[Event] = []
    cleared: list[str] = []
    is_full = False

    def audit(event: Event) -> None:
        if is_full:
            raise OSError("no space")
        events.append(event)

    book = Book(engine="e", kv_pool="p", key=KEY, audit=audit, invalidate=cleared.append)
    lease = book.lease(ACME, "b")
    is_full = True
    with pytest.raises(OSError, match="no space"), lease:
        lease.transfer()
    assert cleared == ["b"]
    assert book.counts["unrecorded"] == 2
    with pytest.raises(OSError, match="no space"):
        book.lease(ACME, "b")
    assert book.open_blocks == 0


def fields(name: str) -> tuple[object, object, object]:
    return {"tenant": (None, "", "globex"), "request_id": (None, 7, "r2")}.get(
        name, (None, "1795000000000", ACME.created_at_ms + 1)
    )


@pytest.mark.parametrize(
    ("name", "absent", "differs"),
    [
        ("tenant", "no_tenant", "tenant_differs"),
        ("request_id", "no_request_id", "request_id_differs"),
        ("created_at_ms", "no_creation_time", "creation_time_differs"),
    ],
)
def test_the_gate_discards_kv_whose_label_lacks_or_contradicts(
    name: str, absent: str, differs: str
) -> None:
    for value, reason in zip(fields(name), (absent, absent, differs), strict=True):
        one = station()
        with one.book.lease(ACME, "b") as lease:
            one.memory["b"] = ACME
            label: dict[str, object] = {**lease.transfer(), name: value}
            with pytest.raises(KvRefusedError) as refused:
                one.gate.admit(lease, label)
            assert not one.memory
            with pytest.raises(LeaseEndedError):
                lease.check()
        assert refused.value.reason == reason
        assert one.gate.mismatches == {reason: 1}
        assert kinds(one)[2:] == [
            ("metadata_mismatch", reason),
            ("rejected", "kv_mismatch"),
            ("released", "rejected"),
        ]
        told = "globex" if reason == "tenant_differs" else None
        assert one.events[2].other_tenant == told


def test_the_gate_takes_what_fits_and_nothing_without_a_label_or_too_late() -> None:
    clock = Clock()
    one = Engine("e", clock)
    gate = Gate(one.book)
    with one.book.lease(ACME, "a") as lease:
        label = lease.transfer()
        gate.admit(lease, label)
    assert ("transferred", "received") in kinds(one)
    for late_ms, given in ((0, None), (LEASE_MS, label)):
        lease = one.book.lease(ACME, "b", for_ms=10 * LEASE_MS)
        clock.ms += late_ms
        with pytest.raises(KvRefusedError):
            gate.admit(lease, given)
    assert gate.mismatches == {"no_tenant": 1, "lease_expired": 1}


def test_records_are_engine_events_and_hold_no_handle() -> None:
    one = kept(Clock())
    one.book.reuse(ACME, "b").reject()
    for event in one.events:
        line = event.line()
        record = decode(EngineEvent, line, Encoding.JSON)
        for name in Event.__dataclass_fields__:
            assert getattr(record, name) == getattr(event, name)
        assert b"page" not in line
        assert line.endswith(b"}\n")
    assert repr(BlockTagger(KEY, "e")) == "BlockTagger(hidden)"
    with pytest.raises(ValueError, match="16 bytes"):
        BlockTagger(b"short", "e")


def test_the_example_of_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(example, "docs/ledger.md", "exec"), names)
    assert names["answer"] == "KV"
    assert names["pages"] == {"page 7": "", "page 8": "KV"}
    kept = [one.detail for one in read_journal("audit.jsonl")].count("kept")
    assert kept == 2
    assert names["decode"].open_blocks == 1


def test_the_page_lists_every_word_of_a_release() -> None:
    page = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `released` \| (.*?) \|", page, re.M)
    told = set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert told == {*End, *HOLDS_ON, "expired", "evicted", "crashed"}


@pytest.mark.parametrize(
    ("tenant", "request_id", "created_at_ms"),
    [("", "r", 1), ("t" * 513, "r", 1), ("t", "a\nb", 1), ("t", "r", 0), ("t", "r", 10**18)],
)
def test_an_owner_is_what_a_record_can_hold(
    tenant: str, request_id: str, created_at_ms: int
) -> None:
    with pytest.raises(ValueError, match=r"characters|milliseconds"):
        Owner(tenant, request_id, created_at_ms)
