"""A panel shows what its committed queries have, of the series that is meant."""

import time
from collections.abc import Iterator

import pytest

from tests.cluster.boards import Panel
from tests.cluster.seen import LEARNING, OPEN, SHOWN
from tests.cluster.served import served
from tests.dashboards.kit import filled
from tests.services.prometheus import Prometheus, prometheus

PAGE = """bleedwatch_engine_unreleased_tokens{engine="engine-1",rank="0",quality="exact"} 3344
bleedwatch_engine_unreleased_tokens{engine="engine-2",rank="0",quality="exact"} 7
bleedwatch_incidents{state="open"} 2
bleedwatch_incidents{state="resolved"} 5
"""
UNRELEASED = Panel("overview", "Unreleased KV tokens", {"engine": "engine-1"})
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("boards")
    with served(PAGE) as place, prometheus(folder, targets={"made": [place]}) as one:
        until_s = time.monotonic() + PATIENCE_S
        while not one.query("bleedwatch_incidents") and time.monotonic() < until_s:
            time.sleep(0.1)
        yield one


@pytest.mark.parametrize(
    ("panel", "shown"),
    [
        (UNRELEASED, 3344),
        (Panel("overview", "Unreleased KV tokens", {"engine": "engine-3"}), None),
        (Panel("overview", "Open incidents"), 2),
        (Panel("overview", "Findings by rule", {"rule": "BW001"}), None),
    ],
    ids=str,
)
def test_a_panel_shows_the_series_that_is_meant(
    scraped: Prometheus, panel: Panel, shown: float | None
) -> None:
    now_s = time.time()
    assert panel.shown(scraped, since_s=now_s - 5, until_s=now_s) == shown


def test_a_graph_shows_what_was_and_a_figure_what_is(scraped: Prometheus) -> None:
    before_s = time.time() - 3_600
    assert UNRELEASED.shown(scraped, since_s=before_s - 5, until_s=before_s) is None
    assert Panel("overview", "Open incidents").shown(scraped, since_s=0, until_s=1) == 2


def test_a_board_without_the_panel_is_an_error() -> None:
    with pytest.raises(LookupError, match="overview has no panel 'Open doors'"):
        Panel("overview", "Open doors").targets()


@pytest.mark.parametrize("panel", [LEARNING, OPEN, *SHOWN["BW001"], *SHOWN["BW201"]], ids=str)
def test_the_demo_looks_at_panels_that_there_are(panel: Panel) -> None:
    exprs = [filled(target["expr"]) for target in panel.targets()]
    assert exprs
    assert not [expr for expr in exprs if "$" in expr]
