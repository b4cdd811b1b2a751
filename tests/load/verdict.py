"""What a run over Kafka must show; each function returns what a table does not show."""

import statistics
from collections.abc import Sequence
from typing import Any, Final

Row = dict[str, Any]

OTHER_SHARE: Final = 0.05
"""What is less sure than high rests on what other pools have shown, which travels with a delay."""

FOUND_SECONDS: Final = 1.0
"""From acknowledged to found, for 99 of 100."""

FULL_SECONDS: Final = 150
"""The window of a soak is 120 s long; from here on it is full and its rows are compared."""

LEAST_ROWS: Final = 12
"""Three minutes of full windows: fewer tell nothing of memory."""

RATE_SHARE: Final = 0.99
"""The sender itself is up to half a percent late."""

GROWTH: Final = 1.05
"""From the first third of the rows to the last; a memory of a day that turns over moves RSS by
some percent both ways."""


def labelled(rows: Sequence[Row]) -> list[str]:
    """The same findings of high confidence as in one process, and nearly the same others."""
    high = next(row for row in rows if row["confidence"] == "high")
    others = [row for row in rows if row is not high]
    apart = sum(row["only replay"] + row["only stream"] for row in others)
    most = OTHER_SHARE * sum(row["replay"] for row in others)
    faults = []
    if high["only replay"] or high["only stream"]:
        faults.append("findings of high confidence differ")
    if apart > most:
        faults.append(f"{apart} other findings differ; at most {most:.0f} may")
    return faults


def latency(rows: Sequence[Row]) -> list[str]:
    """Every bleed is found, 99 of 100 within a second."""
    seen = {row["measured"]: row["value"] for row in rows}
    faults = []
    if seen["of them found"] < seen["bleeds planted"]:
        faults.append(f"{seen['bleeds planted'] - seen['of them found']:.0f} bleeds were not found")
    if seen["acknowledged to found, p99"] >= FOUND_SECONDS:
        faults.append(f"p99 is {seen['acknowledged to found, p99']} s, not under {FOUND_SECONDS} s")
    return faults


def soak(rows: Sequence[Row], tokens_per_second: int) -> list[str]:
    """The rate is kept up once the window is full, and memory is flat from there on."""
    full = [row for row in rows[:-1] if int(row["after"].split()[0]) > FULL_SECONDS]
    if len(full) < LEAST_ROWS:
        return ["too short to tell: give MINUTES=6 or more"]
    faults = []
    rate = statistics.mean(row["tokens/s"] for row in full)
    if rate < RATE_SHARE * tokens_per_second:
        faults.append(f"{rate:,.0f} tokens/s are kept up, not {tokens_per_second:,}")
    third = len(full) // 3
    before = statistics.mean(row["RSS MiB"] for row in full[:third])
    after = statistics.mean(row["RSS MiB"] for row in full[-third:])
    if after > GROWTH * before:
        faults.append(f"memory has grown from {before:,.0f} to {after:,.0f} MiB")
    return faults
