"""Renders the chart in-process: what `helm template` would print, as objects."""

from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from helm_python.chart import Chart, lint

CHART: Final = Path(__file__).parents[2] / "helm" / "bleedwatch"
SCENARIOS: Final = sorted((CHART / "ci").glob("*.yaml"))

Manifest = dict[str, Any]


def render(values: dict[str, Any] | None = None, *, name: str = "bleedwatch") -> list[Manifest]:
    """Return the objects of a release with these values."""
    with Chart.load(CHART) as chart:
        made = chart.render(values=values, name=name)
    texts = [text for path, text in made.items() if path.endswith(".yaml")]
    return [each for text in texts for each in yaml.safe_load_all(text) if each]


@cache
def scenario(path: Path) -> list[Manifest]:
    """Return the objects of one of the chart's scenarios."""
    return render(yaml.safe_load(path.read_text(encoding="utf-8")))


def complaints() -> list[str]:
    """Return what the linter finds, but for the icon that we do not have."""
    found = lint(CHART, strict=True)["messages"]
    return [one["error"] for one in found if one["error"] != "icon is recommended"]
