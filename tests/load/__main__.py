"""`python -m tests.load latency|soak|labelled`: measure the stream over Kafka and print a table.

Ends with 1 if the table does not show what it must, and says what.
"""

import argparse
import sys
from pathlib import Path

from tests.load import labelled, latency, soak, verdict


def main() -> int:
    """Run one measurement; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.load")
    parser.add_argument("what", choices=["latency", "soak", "labelled"])
    parser.add_argument("--minutes", type=float, default=0.0, help="0 is the usual time")
    parser.add_argument("--tokens-per-second", type=int, default=0, help="0 is the usual rate")
    parser.add_argument("--sampling", choices=["winnow", "every"], default="winnow")
    parser.add_argument("--workers", type=int, default=soak.WORKERS, help="of a soak")
    parser.add_argument("--data", type=Path, help="folder of labelled traffic")
    parser.add_argument("--set", choices=["planted", "requests"], default="planted")
    parser.add_argument("--urgent", action="store_true", help="go before others on this machine")
    wanted = parser.parse_args()
    if wanted.what == "latency":
        rate = wanted.tokens_per_second or latency.TOKENS_PER_SECOND
        rows = latency.run(60 * (wanted.minutes or 3.0), rate, urgent=wanted.urgent)
        faults = verdict.latency(rows)
    elif wanted.what == "labelled":
        if wanted.data is None:
            parser.error("labelled needs --data FOLDER, as `bleedwatch eval` takes it")
        rows = labelled.run(wanted.data, wanted.set, urgent=wanted.urgent)
        faults = verdict.labelled(rows)
    else:
        rate = wanted.tokens_per_second or soak.TOKENS_PER_SECOND
        seconds = 60 * (wanted.minutes or 15.0)
        rows = soak.run(seconds, wanted.sampling, rate, count=wanted.workers, urgent=wanted.urgent)
        faults = verdict.soak(rows, rate)
    print(table(rows))
    for fault in faults:
        print(f"not shown: {fault}", file=sys.stderr)
    return 1 if faults else 0


def table(rows: list[dict[str, object]]) -> str:
    """Return rows as a Markdown table."""
    columns = list(rows[0])
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    lines += [" | ".join(str(row[column]) for column in columns) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
