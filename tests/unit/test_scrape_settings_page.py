"""docs/runtime-metrics.md lists every field of a target and every reason of a failed scrape."""

import re

from ingest.scrape.http import REASONS
from ingest.scrape.scraper import FAULT, SETTINGS
from ingest.scrape.settings import TargetSettings
from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "runtime-metrics.md").read_text(encoding="utf-8")


def first_cells(head: str) -> set[str]:
    """Return the names in the first column of the table that begins with `head`."""
    (table,) = re.findall(rf"^\| {head} \|.*?\n\|[-|]*\n((?:\|.*\n?)+)", PAGE, re.M)
    return {
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }


def test_fields_of_a_target() -> None:
    assert first_cells("field") >= set(TargetSettings.model_fields)


def test_reasons() -> None:
    assert first_cells("reason") == {*REASONS, SETTINGS, FAULT}
