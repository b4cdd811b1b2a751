"""docs/records.md names every field, header, flag and reason of the wire format, and no other."""

import re

import pytest

from detector.model import Role
from ingest import record_headers
from ingest.dead_letter import OTHER, REASONS, DeadLetter
from ingest.request_rows import FLAGS
from ingest.schema_batches import BatchIndex, SequenceBatch
from ingest.schema_records import (
    EngineEvent,
    EventKind,
    Record,
    RequestRow,
    RuntimeSample,
    SequenceRecord,
)
from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")

SECTIONS: dict[str, tuple[type[Record], ...]] = {
    "A batch of sequences": (SequenceBatch, BatchIndex),
    "Sequence": (SequenceRecord,),
    "Runtime sample": (RuntimeSample,),
    "Engine event": (EngineEvent,),
    "Request row": (RequestRow,),
    "Dead letters": (DeadLetter,),
}


def section(title: str) -> str:
    found = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert found, title
    return found[1]


def first_cells(title: str, head: str) -> set[str]:
    """Return the names in the first column of the section's tables that begin with `head`."""
    names: set[str] = set()
    for table in re.findall(rf"^\| {head} \|.*?\n\|[-|]*\n((?:\|.*\n?)+)", section(title), re.M):
        for row in table.splitlines():
            names |= set(re.findall(r"`([\w-]+)`", row.split("|")[1]))
    return names


@pytest.mark.parametrize("title", SECTIONS)
def test_every_field_is_documented(title: str) -> None:
    fields = {name for record in SECTIONS[title] for name in record.__struct_fields__}
    documented = first_cells(title, "field")
    assert documented - fields == set()
    assert fields - documented <= {"schema"}


def test_every_header_is_documented() -> None:
    names = {
        record_headers.CONTENT_TYPE,
        record_headers.SCHEMA,
        record_headers.EVENT_MS,
        record_headers.TRACE_PARENT,
    }
    assert first_cells("Messages", "header") == names


def test_every_reason_and_flag_is_documented() -> None:
    assert first_cells("Dead letters", "reason") == {*REASONS, OTHER}
    assert first_cells("Request row", "flag") == FLAGS


def test_the_words_of_records_are_listed() -> None:
    (kinds,) = re.findall(r"^\| `kind` \| word.*$", section("Engine event"), re.M)
    assert set(re.findall(r"`(\w+)`", kinds)) == {"kind", *EventKind}
    (roles,) = re.findall(r"^\| `spans` .*$", section("Sequence"), re.M)
    assert set(re.findall(r"`(\w+)`", roles)) == {"spans", *Role}
