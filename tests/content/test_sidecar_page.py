"""docs/sidecar.md lists the metrics and the health file of a sidecar exactly as they are."""

import re

from exporters.sidecar_metrics import SIDECAR
from ingest.sidecar_health import LogHealth, SidecarHealth
from tests.content.metric_rows import metric_rows
from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "sidecar.md").read_text(encoding="utf-8")


def test_every_metric_is_documented_and_none_that_does_not_exist() -> None:
    rows = metric_rows(SIDECAR)
    assert re.findall(r"^\| `bleedwatch_.*$", PAGE, re.M) == rows


def test_every_field_of_the_health_file_is_documented() -> None:
    (section,) = re.findall(r"^## Health$(.*?)^## ", PAGE, re.M | re.S)
    told = set(re.findall(r"`([a-z_]+)`", section))
    fields = {*SidecarHealth.__struct_fields__, *LogHealth.__struct_fields__}
    assert not fields - told
