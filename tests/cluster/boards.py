"""What a panel of a board shows of the cluster: its own queries, asked as Grafana asks them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.dashboards.kit import Json, filled, panels
from tests.services.prometheus import Labels, Prometheus


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of a committed board by its title; `labels` are those of the series that is meant."""

    board: str
    title: str
    labels: Labels = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.title} ({self.board} board)"

    def shown(self, prometheus: Prometheus, *, since_s: float, until_s: float) -> float | None:
        """Return the most that it shows of the series meant in a time (Unix); None if nothing.

        A graph shows the whole time, a figure its end.
        """
        values = [
            value
            for target in self.targets()
            for labels, value in _values(prometheus, target, since_s, until_s)
            if self.labels.items() <= labels.items()
        ]
        return max(values, default=None)

    def targets(self) -> list[Json]:
        """Return its queries; raises LookupError if the board has no such panel."""
        for panel in panels(self.board):
            if panel["title"] == self.title:
                found: list[Json] = panel["targets"]
                return found
        raise LookupError(f"the board {self.board} has no panel {self.title!r}")


def _values(
    prometheus: Prometheus, target: Json, since_s: float, until_s: float
) -> Iterator[tuple[Mapping[str, str], float]]:
    expr = filled(target["expr"])
    if target["range"]:
        for series in prometheus.range(expr, start_s=since_s, end_s=until_s):
            yield from ((series.labels, value) for _, value in series.points)
    else:
        for one in prometheus.query(expr):
            yield one["metric"], float(one["value"][1])
