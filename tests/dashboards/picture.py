"""Draws a board from the answers to its queries: a page of SVG, and a picture of it by Chromium.

It stands for Grafana in two things only: where panels are, and what series they show.
"""

import html
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.dashboards.kit import Json
from tests.services.packages import program
from tests.services.prometheus import Series

ROW_PX: Final = 30
"""Height of one unit of the grid, as in Grafana."""

WIDTH_PX: Final = 1_400

COLOURS: Final = ("#7eb26d", "#eab839", "#6ed0e0", "#ef843c", "#e24d42", "#1f78c1", "#ba43a9")
RED, ORANGE, GREEN = "#c4162a", "#e0752d", "#37872d"

STYLE: Final = """
body{margin:0;padding:8px;background:#111217;color:#ccccdc;font:12px sans-serif}
main{display:grid;grid-template-columns:repeat(24,1fr);gap:6px;grid-auto-rows:30px}
section{background:#181b1f;border:1px solid #2c3235;border-radius:3px;padding:5px;overflow:hidden}
h1{font-size:18px;margin:2px 4px 8px}h2{font-size:14px;margin:7px 2px}
h3{font-size:12px;margin:0 0 3px;white-space:nowrap}
.big{font-size:34px;text-align:center;border-radius:3px;color:#fff;padding:10px}
td,th{padding:1px 8px;text-align:left}i{display:inline-block;width:10px;height:3px;margin:2px 4px}
.key{font-size:10px;line-height:13px;height:27px;overflow:hidden}
"""

Ask = Callable[[str], list[Series]]


def page(board: Json, ask: Ask) -> str:
    """Return a board as HTML; `ask` answers an expression."""
    parts = [_placed(panel, _inside(panel, ask)) for panel in board["panels"]]
    title = html.escape(board["title"])
    return (
        f"<!doctype html><meta charset=utf-8><style>{STYLE}</style><h1>{title}</h1>"
        f"<main>{''.join(parts)}</main>"
    )


def picture(board: Json, ask: Ask, path: Path) -> None:
    """Write a board as PNG beside a page of the same name, which is removed."""
    source = path.with_suffix(".html")
    source.write_text(page(board, ask), encoding="utf-8")
    units = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"])
    height = units * (ROW_PX + 6) + 60
    command = [program("chromium", "chromium"), "--headless", "--no-sandbox", "--disable-gpu"]
    command += ["--hide-scrollbars", f"--window-size={WIDTH_PX},{height}"]
    command += [f"--screenshot={path}", source.as_uri()]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    source.unlink()


def _placed(panel: Json, inside: str) -> str:
    at = panel["gridPos"]
    place = f"grid-column:{at['x'] + 1}/span {at['w']};grid-row:{at['y'] + 1}/span {at['h']}"
    if panel["type"] == "row":
        return f'<h2 style="{place}">▾ {html.escape(panel["title"])}</h2>'
    return f'<section style="{place}"><h3>{html.escape(panel["title"])}</h3>{inside}</section>'


def _inside(panel: Json, ask: Ask) -> str:
    if panel["type"] == "row":
        return ""
    series = [
        (_name(target["legendFormat"], one.labels), one)
        for target in panel["targets"]
        for one in ask(target["expr"])
    ]
    defaults = panel["fieldConfig"]["defaults"]
    if not series:
        return f'<div class=big style="color:#888">{html.escape(defaults["noValue"])}</div>'
    draw = {"stat": _stat, "bargauge": _bars, "table": _table, "timeseries": _lines}
    return draw[panel["type"]](series, defaults, panel["gridPos"])


Named = Sequence[tuple[str, Series]]


def _stat(series: Named, defaults: Json, _at: Json) -> str:
    value = series[0][1].points[-1][1]
    colour = _colour(value, defaults)
    return f'<div class=big style="background:{colour}">{_shown(value, defaults["unit"])}</div>'


def _bars(series: Named, defaults: Json, _at: Json) -> str:
    most = max((one.points[-1][1] for _, one in series), default=1) or 1
    return "".join(
        f"<div>{html.escape(name)}: {_shown(one.points[-1][1], defaults['unit'])}"
        f'<div style="background:{GREEN};height:12px;width:{one.points[-1][1] / most * 90:.0f}%">'
        "</div></div>"
        for name, one in series
    )


def _table(series: Named, defaults: Json, _at: Json) -> str:
    names = list(dict.fromkeys(name for _, one in series for name in one.labels))
    head = "".join(f"<th>{html.escape(name)}" for name in [*names, "value"])
    rows = [
        "".join(f"<td>{html.escape(one.labels.get(name, ''))}" for name in names)
        + f"<td>{_shown(one.points[-1][1], defaults['unit'])}"
        for _, one in series
    ]
    return f"<table><tr>{head}{''.join(f'<tr>{row}' for row in rows)}</table>"


def _lines(series: Named, defaults: Json, at: Json) -> str:
    width, height = at["w"] * WIDTH_PX // 24 - 24, at["h"] * (ROW_PX + 6) - 78
    times = [moment for _, one in series for moment, _ in one.points]
    limits = [step["value"] for step in defaults["thresholds"]["steps"] if step["value"]]
    most = max([value for _, one in series for _, value in one.points] + limits) * 1.05 or 1.0
    first, span = min(times), max(max(times) - min(times), 1e-9)

    def dot(moment: float, value: float) -> str:
        return f"{(moment - first) / span * width:.1f},{height - value / most * height:.1f}"

    drawn = [
        f'<polyline fill=none stroke="{_line(at)}" stroke-width=1.5 points="'
        f'{" ".join(dot(*point) for point in one.points)}"/>'
        for at, (_, one) in enumerate(series)
    ]
    for step in defaults["thresholds"]["steps"][1:]:
        y = height - step["value"] / most * height
        drawn.append(
            f'<line x1=0 x2={width} y1={y:.1f} y2={y:.1f} stroke="{_alarm(step)}" '
            "stroke-dasharray=6/>"
        )
    keys = "".join(
        f'<i style="background:{_line(at)}"></i>{html.escape(name)}'
        for at, (name, _) in enumerate(series)
    )
    top = _shown(most, defaults["unit"])
    return (
        f"<div style='font-size:9px'>{top}</div><svg width={width} height={height} "
        f'style="border-bottom:1px solid #555;border-left:1px solid #555">{"".join(drawn)}</svg>'
        f"<div class=key>{keys}</div>"
    )


def _line(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _alarm(step: Json) -> str:
    return RED if step["color"] == "red" else ORANGE


def _colour(value: float, defaults: Json) -> str:
    passed = [step for step in defaults["thresholds"]["steps"][1:] if value >= step["value"]]
    return _alarm(passed[-1]) if passed else GREEN


def _name(legend: str, labels: Mapping[str, str]) -> str:
    name = legend
    for label, word in labels.items():
        name = name.replace("{{" + label + "}}", word)
    return " ".join(word for word in name.split() if "{{" not in word)


def _shown(value: float, unit: str) -> str:
    units: dict[str, Any] = {
        "percentunit": lambda: f"{value:.2%}",
        "bytes": lambda: f"{value / 2**10:,.1f} KiB",
        "Bps": lambda: f"{value / 2**10:.2f} KiB/s",
        "s": lambda: f"{value:.3g} s",
        "ops": lambda: f"{value:.3g}/s",
    }
    return str(units.get(unit, lambda: f"{value:.4g}")())
