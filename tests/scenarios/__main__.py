"""Runs every scenario and prints bug class x rule, expected against seen; 1 on a difference.

x: must fire and did. o: may fire and did. '.': did not, and need not.
`clean` as an argument runs a day of traffic through a deployment without faults instead.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from detector.finding import Confidence
from detector.sample.traffic import TrafficSettings
from exporters.incidents.model import counts_alone
from tests.fakes.cluster.simulation import Topology
from tests.scenarios.catalog import SCENARIOS, Scenario
from tests.scenarios.expectations import Row, fired, rows
from tests.scenarios.run import run, traffic

HOURS: Final = 24
REQUESTS_PER_S: Final = 1 / 3
"""What one engine of the demo serves."""


def main() -> int:
    """Return the exit code."""
    return _clean() if sys.argv[1:] == ["clean"] else _matrix()


def _matrix() -> int:
    expected = rows()
    seen: dict[str, set[str]] = {}
    for name in dict.fromkeys(row.scenario for row in expected):
        seen[name] = fired(run(SCENARIOS[name]).findings)
        print(f"ran {name}", file=sys.stderr, flush=True)
    return 1 if print_matrix(expected, seen) else 0


def print_matrix(expected: Sequence[Row], seen: Mapping[str, set[str]]) -> int:
    """Print what fired in each scenario beside what must; return the number of differences."""
    rules = sorted({rule for row in expected for rule in (*row.fires, *row.may)})
    print(" ".join([f"{'report':42}", f"{'scenario':29}", *rules]))
    wrong = 0
    for row in expected:
        cells = [_cell(row, rule, seen[row.scenario]) for rule in rules]
        name = f"{row.bug} {row.report}" if row.bug != row.report else row.bug
        print(" ".join([f"{name[:42]:42}", f"{row.scenario:29}", *cells]).rstrip())
        for difference in row.differences(seen[row.scenario]):
            wrong += 1
            print(f"  NOT AS EXPECTED: {difference}")
    print(f"\n{len(expected)} reports, {len(seen)} scenarios, {wrong} differences")
    return wrong


def _cell(row: Row, rule: str, seen: set[str]) -> str:
    if rule in row.fires:
        return "x    " if rule in seen else "MISS "
    if rule in seen:
        return "o    " if rule in row.may else "EXTRA"
    return ".    "


def _clean() -> int:
    """Run a day without faults: nothing of high confidence, though responses overlap."""
    seconds = HOURS * 3600.0
    load = traffic(
        TrafficSettings(
            engines=1, requests=int(seconds * REQUESTS_PER_S), duration_s=seconds,
            history_requests=2_000,
        )
    )  # fmt: skip
    sized = replace(Topology(kind="vllm"), decode_tokens=65_536, scrape_s=15.0)
    seen = run(Scenario(topology=sized), load)
    found = seen.findings
    high = [one for one in found if one.confidence is Confidence.HIGH]
    alone = [one for one in found if counts_alone(one.severity, one.confidence)]
    print(
        f"{HOURS} simulated hours, {seen.responses:,} responses: {seen.overlapping:,} of their "
        f"10-token shingles were shown by another tenant, {seen.unexplained:,} unexplained; "
        f"{len(found):,} findings, {len(high):,} of high confidence, "
        f"{len(alone):,} that make an incident"
    )
    for one in high:
        print(f"  {one.rule} {one.severity.value}: {one.explanation}")
    return 1 if high or alone or not seen.overlapping else 0


if __name__ == "__main__":
    sys.exit(main())
