"""Everything works again once all is scraped and no output fails, and not before."""

import time
from pathlib import Path

import pytest

from tests.cluster.places import recovered
from tests.cluster.served import served
from tests.services.prometheus import prometheus

DELIVERS = 'bleedwatch_output_failing{output="desk"} 0\n'
FAILS = 'bleedwatch_output_failing{output="pager"} 1\n'
NOBODY = "127.0.0.1:9"
PATIENCE_S = 60.0


@pytest.mark.parametrize(
    ("page", "others", "seen"),
    [
        (DELIVERS, [], "1 targets are up, 1 outputs deliver"),
        (DELIVERS + FAILS, [], None),
        ("up_to_date 1\n", [], None),
        (DELIVERS, [NOBODY], None),
    ],
    ids=["all", "an output fails", "no output is told of", "a process is away"],
)
def test_everything_works_again(
    tmp_path: Path, page: str, others: list[str], seen: str | None
) -> None:
    with (
        served(page) as place,
        prometheus(tmp_path, targets={"made": [place, *others]}) as server,
    ):
        until_s = time.monotonic() + PATIENCE_S
        while len(server.query("up")) <= len(others) and time.monotonic() < until_s:
            time.sleep(0.1)
        assert recovered(server) == seen
