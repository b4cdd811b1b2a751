"""`python -m detector.benchmarks NAME [--json FILE]`: run one bench, print its table."""

import argparse
import json
import sys
from pathlib import Path

from detector.benchmarks.kernels import Report, run_kernels, run_long_end_to_end
from detector.benchmarks.records import run_records
from detector.benchmarks.trace import run_trace

_COLUMNS = ("group", "contestant", "unit", "ns_median", "ns_p10", "ns_p90", "ours_is_faster_by")

_BENCHES = {
    "kernels": run_kernels,
    "endtoend": run_long_end_to_end,
    "records": run_records,
    "trace": run_trace,
}


def markdown(report: Report) -> str:
    """Return the report as a Markdown table, then the ratios."""
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    lines += [
        "| " + " | ".join(str(row.get(column, "")) for column in _COLUMNS) + " |"
        for row in report.rows
    ]
    return "\n".join([*lines, "", *(f"{name}: {x:.1f}x" for name, x in report.ratios.items())])


def main() -> None:
    """Measure, print, and write the JSON file if one is named."""
    parser = argparse.ArgumentParser(prog="python -m detector.benchmarks")
    parser.add_argument("bench", choices=sorted(_BENCHES))
    parser.add_argument("--json", type=Path, help="also write rows and ratios to this file")
    wanted = parser.parse_args()
    report = _BENCHES[wanted.bench](on_progress=lambda what: print(what, file=sys.stderr))
    print(markdown(report))
    if wanted.json:
        wanted.json.write_text(json.dumps({"ratios": report.ratios, "rows": report.rows}, indent=1))


if __name__ == "__main__":
    main()
