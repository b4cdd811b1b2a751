"""Expressions that boards and alerts share: how counters are asked, once and in one way."""

from typing import Final

BOARD_INTERVAL: Final = "$__rate_interval"
"""Grafana puts in what suits the zoom of a board and the interval of scraping."""

ENGINE: Final = '{engine=~"$engine"}'
"""Selects what the variable of a board selects."""


def rate(metric: str, by: str = "") -> str:
    """Return the rate of a counter for a board, by labels."""
    return f"sum{_by(by)} (rate({metric}[{BOARD_INTERVAL}]))"


def rise(metric: str, window: str = BOARD_INTERVAL, *, by: str = "", merge: str = "sum") -> str:
    """Return by how much counters rose within `window`, those included that were born in it.

    `increase` alone sees nothing of a series whose first sample is 1 already: a first finding of a
    rule, a first failure. All that a series younger than the window counts was counted within it.
    """
    born = f"({metric} unless {metric} offset {window})"
    return f"{merge}{_by(by)} ({born} or increase({metric}[{window}]))"


def _by(labels: str) -> str:
    return f" by ({labels})" if labels else ""
