"""Reads the few metrics that matter out of the text format of Prometheus.

An engine's page has some hundred samples, mostly histograms. Lines of other metrics are left out
before the parser sees them: its cost is that of the wanted ones.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from detector.errors import ScrapeError

_LINE_NAME = re.compile(r"[^\s{]+")
_TYPE_LINE = re.compile(r"# (?:TYPE|HELP) ([^\s{]+)")


class Sample(NamedTuple):
    """One series and its value, which may be any float."""

    labels: Mapping[str, str]
    value: float


class Exposition(NamedTuple):
    """The wanted samples by name of metric, and the names of all metrics that are there."""

    samples: Mapping[str, list[Sample]]
    names: frozenset[str]


def parse_exposition(text: str, is_wanted: Callable[[str], bool]) -> Exposition:
    """Return the samples of the wanted metrics. A metric that is only declared has none.

    Raises ScrapeError for what is no such text.
    """
    names: set[str] = set()
    kept: list[str] = []
    for line in text.split("\n"):
        if line.startswith("#"):
            declared = _TYPE_LINE.match(line)
            if declared:
                names.add(declared[1])
        elif found := _LINE_NAME.match(line):
            names.add(found[0])
            if is_wanted(found[0]):
                kept.append(line)
    samples: dict[str, list[Sample]] = {}
    for name, sample in _parsed("\n".join(kept) + "\n"):
        samples.setdefault(name, []).append(sample)
    return Exposition(samples, frozenset(names))


def _parsed(text: str) -> Iterator[tuple[str, Sample]]:
    try:
        for family in text_string_to_metric_families(text):
            for one in family.samples:
                yield one.name, Sample(one.labels, float(one.value))
    except (ValueError, IndexError, KeyError):
        raise ScrapeError(
            "malformed",
            "a wanted metric is not in the text format of Prometheus",
            hint="check that scrape.targets names the engine itself",
        ) from None
