"""Rows of a page that lists metrics, as they must be."""

from collections.abc import Iterable
from typing import Protocol


class Listed(Protocol):
    """A metric of one of the lists of `exporters`."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def help(self) -> str: ...


def metric_rows(metrics: Iterable[Listed]) -> list[str]:
    """Return one row of Markdown for each metric."""
    return [
        " | ".join(
            (
                f"| `{metric.name}`",
                metric.kind,
                ", ".join(f"`{label}`" for label in metric.labels),
                f"{metric.help} |",
            )
        ).replace("|  |", "| |")
        for metric in metrics
    ]
