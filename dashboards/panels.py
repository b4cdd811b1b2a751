"""Panels of Grafana as plain data: what every panel has in common is written once, here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from dashboards.queries import rate

Json = dict[str, Any]
Kind = Literal["stat", "timeseries", "table", "bargauge"]

DATASOURCE: Final[Json] = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS: Final = 24
"""Width of Grafana's grid."""

HEIGHTS: Final[dict[str, int]] = {"stat": 4, "timeseries": 8, "table": 8, "bargauge": 6}

RUNBOOKS: Final = "${triage}/runbooks"
"""The api serves the runbooks; where it is, is a variable of every board."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One expression and the name of its series."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel: a title, a sentence that says what it means, its queries.

    `warn_at` and `alarm_at` are values from which it is orange and red; with `falls` it is so below
    them. `runbook` names the page that says what to do.
    """

    title: str
    description: str
    queries: tuple[Query, ...]
    kind: Kind = "timeseries"
    unit: str = "short"
    width: int = 8
    warn_at: float | None = None
    alarm_at: float | None = None
    runbook: str | None = None
    runbook_title: str = "What to do"
    no_value: str = "not known"


@dataclass(frozen=True, slots=True)
class Row:
    """A titled row of panels."""

    title: str
    panels: tuple[Panel, ...]


def lines(
    title: str,
    description: str,
    exprs: Mapping[str, str],
    *,
    unit: str = "short",
    width: int = 8,
    runbook: str | None = None,
) -> Panel:
    """Return a panel of expressions by the names of their series."""
    queries = tuple(Query(expr=expr, legend=legend) for legend, expr in exprs.items())
    return Panel(
        title=title, description=description, queries=queries, unit=unit, width=width,
        runbook=runbook,
    )  # fmt: skip


def rates(
    title: str,
    description: str,
    metric: str,
    by: str,
    *,
    unit: str = "ops",
    width: int = 8,
    runbook: str | None = None,
) -> Panel:
    """Return a panel of one counter's rate by one label."""
    exprs = {f"{{{{{by}}}}}": rate(metric, by)}
    return lines(title, description, exprs, unit=unit, width=width, runbook=runbook)


def layout(rows: Iterable[Row]) -> list[Json]:
    """Return the panels of all rows, numbered and placed from left to right and downwards."""
    placed: list[Json] = []
    y = 0
    for row in rows:
        at = {"h": 1, "w": COLUMNS, "x": 0, "y": y}
        placed.append(
            {"type": "row", "id": len(placed) + 1, "title": row.title, "collapsed": False,
             "gridPos": at, "panels": []}
        )  # fmt: skip
        y += 1
        x = tallest = 0
        for panel in row.panels:
            height = HEIGHTS[panel.kind]
            if x + panel.width > COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            at = {"h": height, "w": panel.width, "x": x, "y": y}
            placed.append({"id": len(placed) + 1, "gridPos": at, **_panel(panel)})
            x += panel.width
            tallest = max(tallest, height)
        y += tallest
    return placed


def _panel(panel: Panel) -> Json:
    links = []
    if panel.runbook:
        url = f"{RUNBOOKS}/{panel.runbook}"
        links.append({"title": panel.runbook_title, "url": url, "targetBlank": True})
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "targets": [_target(panel, number) for number in range(len(panel.queries))],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _options(panel),
        "links": links,
    }


def _target(panel: Panel, number: int) -> Json:
    query = panel.queries[number]
    is_table = panel.kind == "table"
    return {
        "refId": chr(ord("A") + number),
        "datasource": DATASOURCE,
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
        "instant": panel.kind != "timeseries",
        "range": panel.kind == "timeseries",
        "format": "table" if is_table else "time_series",
    }


def _defaults(panel: Panel) -> Json:
    steps: list[Json] = [{"color": "green", "value": None}]
    if panel.warn_at is not None:
        steps.append({"color": "orange", "value": panel.warn_at})
    if panel.alarm_at is not None:
        steps.append({"color": "red", "value": panel.alarm_at})
    defaults: Json = {
        "unit": panel.unit,
        "noValue": panel.no_value,
        "color": {"mode": "palette-classic" if panel.kind == "timeseries" else "thresholds"},
        "thresholds": {"mode": "absolute", "steps": steps},
    }
    if panel.kind == "timeseries":
        style = "line" if len(steps) > 1 else "off"
        defaults["custom"] = {
            "drawStyle": "line", "lineWidth": 2, "fillOpacity": 8, "spanNulls": False,
            "showPoints": "never", "thresholdsStyle": {"mode": style},
        }  # fmt: skip
    return defaults


def _options(panel: Panel) -> Json:
    reduce = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    if panel.kind == "stat":
        return {
            "reduceOptions": reduce, "colorMode": "background", "graphMode": "none",
            "textMode": "auto", "justifyMode": "auto", "orientation": "auto",
        }  # fmt: skip
    if panel.kind == "bargauge":
        return {"reduceOptions": reduce, "displayMode": "gradient", "orientation": "horizontal"}
    if panel.kind == "table":
        return {"showHeader": True, "cellHeight": "sm"}
    return {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
