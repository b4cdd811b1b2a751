"""Plays the scene on a Kafka node of its own and draws every board from what was scraped of it."""

import tempfile
from pathlib import Path

from dashboards.build import BOARDS
from tests.content.tree import ROOT
from tests.dashboards.kit import board
from tests.dashboards.picture import picture
from tests.dashboards.scene import played
from tests.kafka.cluster import running

IMAGES = ROOT / "docs" / "images"


def main() -> None:
    """Write docs/images/board-*.png."""
    with tempfile.TemporaryDirectory(prefix="bleedwatch-boards-") as name:
        folder = Path(name)
        for part in ("kafka", "scene"):
            (folder / part).mkdir()
        with (
            running(folder / "kafka") as kafka,
            played(folder / "scene", kafka=kafka.bootstrap, prefix="boards") as seen,
        ):
            for one in BOARDS:
                picture(board(one), seen.ask, IMAGES / f"board-{one}.png")
                print(f"docs/images/board-{one}.png")


if __name__ == "__main__":
    main()
