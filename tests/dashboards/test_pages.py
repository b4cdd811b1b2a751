"""docs/alerts.md lists every alert as it is; every board has its picture in docs/dashboards.md."""

import re

from dashboards.alerts import ALERTS
from dashboards.build import BOARDS
from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
BOARDS_PAGE = (ROOT / "docs" / "dashboards.md").read_text(encoding="utf-8")

ROW = re.compile(
    r"^\| `(Bleedwatch\w+)` \| [^|]+ \| `([^|]+)` \| (\w+) \| (\w+) \| (\w+) \| \[(\w+)\]"
)


def test_every_alert_is_listed_as_it_is() -> None:
    listed = [found.groups() for line in PAGE.splitlines() if (found := ROW.match(line))]
    assert listed == [
        (one.name, one.fires, one.hold, one.severity.value, one.owner, one.runbook)
        for one in ALERTS
    ]


def test_every_board_has_a_picture() -> None:
    for name in BOARDS:
        assert f"(images/board-{name}.png)" in BOARDS_PAGE
        assert (ROOT / "docs" / "images" / f"board-{name}.png").is_file()
