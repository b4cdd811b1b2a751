"""What is committed of the chart is what its generator writes, and leaves nothing unsaid."""

from pathlib import Path

import pytest

from helm.build import CHART, files
from helm.values import rows

MADE = files()


@pytest.mark.parametrize("path", sorted(MADE), ids=lambda path: path.name)
def test_what_is_committed_is_what_is_generated(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == MADE[path], "run `make chart`"


def test_every_value_says_what_it_is_for() -> None:
    said = {row.path: row.meaning for row in rows((CHART / "values.yaml").read_text("utf-8"))}
    assert "worker.replicas" in said
    assert [path for path, meaning in said.items() if not meaning] == []
