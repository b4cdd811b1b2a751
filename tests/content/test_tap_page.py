"""docs/tap.md lists the metrics of a tap and the causes of blindness exactly as they are."""

import re

from exporters.tap_metrics import TAP
from ingest.tap.blind import CAUSES
from tests.content.metric_rows import metric_rows
from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "tap.md").read_text(encoding="utf-8")


def test_every_metric_is_documented_and_none_that_does_not_exist() -> None:
    rows = metric_rows(TAP)
    assert re.findall(r"^\| `bleedwatch_.*$", PAGE, re.M) == rows


def test_every_cause_is_documented_in_its_words() -> None:
    (section,) = re.findall(r"^## What it does not see$(.*?)^## ", PAGE, re.M | re.S)
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|$", section, re.M)
    assert rows == list(CAUSES.items())
