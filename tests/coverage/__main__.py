"""Add up what `make coverage` has measured, and fail where tests take too few branches.

The figures are no more than what was seen: a process that is killed tells nothing, and Python 3.11
does not report what follows in a coroutine or its caller once it was resumed by an exception
(python/cpython#106749), which 3.12 does.
"""

import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
from coverage import Coverage

LEAST: Final = 0.90
"""Share of the branches that tests must take, of each package by itself."""

PACKAGES: Final = ("detector", "ingest")

SHOWN: Final = 15
"""Files listed: those with most branches that no test takes."""


class Summary(msgspec.Struct):
    """What coverage counts of one file."""

    num_branches: int = 0
    covered_branches: int = 0

    @property
    def missing(self) -> int:
        """Branches that no test takes."""
        return self.num_branches - self.covered_branches


class File(msgspec.Struct):
    """One file of the report."""

    summary: Summary


class Report(msgspec.Struct):
    """The part of coverage's JSON report that is read here."""

    files: dict[str, File]


def measured() -> dict[str, Summary]:
    """Return the branches of every file, those of all processes put together."""
    coverage = Coverage()
    coverage.combine(keep=True)
    coverage.save()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        coverage.json_report(outfile=str(path))
        report = msgspec.json.decode(path.read_bytes(), type=Report)
    return {name: file.summary for name, file in report.files.items()}


def main() -> int:
    """Print the shares; 0 where both packages have enough."""
    files = measured()
    taken: Counter[str] = Counter()
    branches: Counter[str] = Counter()
    for name, summary in files.items():
        package = Path(name).parts[0]
        taken[package] += summary.covered_branches
        branches[package] += summary.num_branches
    for name in sorted(files, key=lambda one: files[one].missing, reverse=True)[:SHOWN]:
        print(f"{files[name].missing:5} of {files[name].num_branches:4} not taken  {name}")
    enough = True
    for package in PACKAGES:
        share = taken[package] / branches[package]
        enough &= share >= LEAST
        print(f"{package}: {taken[package]} of {branches[package]} branches, {share:.1%}")
    if not enough:
        print(f"error: at least {LEAST:.0%} of each is wanted", file=sys.stderr)
    return not enough


if __name__ == "__main__":
    sys.exit(main())
