"""Shows what a replay found: the findings on stdout, what was and was not read on stderr."""

import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from detector.cli.exit import FINDINGS, OK
from detector.cli.findings_table import ID_SHOWN, show_findings
from detector.cli.options import FailOn
from detector.cli.output import Format, write_document
from detector.cli.terminal import note, program, write

if TYPE_CHECKING:
    from detector.finding import Finding
    from ingest.coverage import Coverage


class Report(Protocol):
    """What a replay returns; findings are in the order of observation."""

    @property
    def findings(self) -> Sequence["Finding"]:
        """Ordered by observation."""
        ...

    @property
    def coverage(self) -> "Coverage":
        """What the sources could not show."""
        ...

    @property
    def requests(self) -> int:
        """Requests read."""
        ...

    @property
    def tokens(self) -> int:
        """Prompt and response tokens read."""
        ...

    @property
    def cpu_seconds(self) -> float:
        """CPU time spent."""
        ...

    @property
    def late(self) -> int:
        """Records that came after their time had passed."""
        ...

    @property
    def clock_jumps(self) -> int:
        """Records dated hours away from those around them."""
        ...

    @property
    def evicted_sequences(self) -> int:
        """Sequences that left the window early for want of memory."""
        ...

    @property
    def learning(self) -> bool:
        """Whether confidence was capped for lack of history."""
        ...


def show_report(report: Report, form: Format, *, saved_as: str | None = None) -> None:
    """Write the findings and the summary; with `saved_as`, a file of findings as well."""
    if saved_as:
        save_findings(report.findings, saved_as)
    if form is Format.TABLE:
        if report.findings:
            show_findings(report.findings)
    elif form is Format.JSONL:
        write("".join(_json_lines(report.findings)))
    else:
        write_document(_document(report), form)
    for line in _summary(report):
        note(line)
    if form is Format.TABLE and report.findings:
        _suggest(report.findings[0].id[:ID_SHOWN], saved_as)


def exit_code(findings: Sequence["Finding"], fail_on: FailOn) -> int:
    """1 when a finding is as severe as `fail_on` or more so, else 0."""
    from detector.finding import Severity

    if fail_on is FailOn.NEVER:
        return OK
    floor = Severity(fail_on.value).rank
    return FINDINGS if any(finding.severity.rank >= floor for finding in findings) else OK


def save_findings(findings: Sequence["Finding"], file: str) -> None:
    """Write findings as JSON lines, whole or not at all, readable by the owner only."""
    target = Path(file)
    descriptor, scratch = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.writelines(_json_lines(findings))
        Path(scratch).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(scratch).unlink()
        raise


def _json_lines(findings: Sequence["Finding"]) -> list[str]:
    import msgspec

    return [json.dumps(msgspec.to_builtins(finding)) + "\n" for finding in findings]


def _document(report: Report) -> dict[str, Any]:
    import msgspec

    return {
        "findings": msgspec.to_builtins(list(report.findings)),
        "requests": report.requests,
        "tokens": report.tokens,
        "cpu_seconds": round(report.cpu_seconds, 3),
        "learning": report.learning,
        "late": report.late,
        "clock_jumps": report.clock_jumps,
        "evicted_sequences": report.evicted_sequences,
        "coverage": _coverage_document(report.coverage),
    }


def _coverage_document(coverage: "Coverage") -> dict[str, Any]:
    import msgspec

    document: dict[str, Any] = msgspec.to_builtins(coverage)
    document["losses"] = [
        {"side": row.side, "loss": str(row.loss), "count": row.requests, "fix": row.fix}
        for row in coverage.losses()
    ]
    document["broken_samples"] = [sample._asdict() for sample in coverage.broken_samples]
    return document


def _summary(report: Report) -> list[str]:
    found = len(report.findings)
    rate = f", {report.tokens / report.cpu_seconds:,.0f} tokens/s" if report.cpu_seconds else ""
    lines = [
        f"{found or 'no'} finding{'' if found == 1 else 's'} in {report.requests:,} requests "
        f"({report.tokens:,} tokens, {report.cpu_seconds:.1f} s CPU{rate})"
    ]
    lines += coverage_lines(report.coverage)
    if report.late:
        lines.append(f"late: {report.late:,} records came after their time had passed")
    if report.clock_jumps:
        lines.append(f"clock: {report.clock_jumps:,} records lie hours from those around them")
    if report.evicted_sequences:
        lines.append(
            f"not judged: {report.evicted_sequences:,} prompts and responses left the window early "
            "(give the index more bytes with detection.index.memory_bytes)"
        )
    if any(one.evidence.thresholds.learning for one in report.findings) or report.learning:
        lines.append(
            "learning: too little history to know what is common, so confidence stays low; "
            "give earlier traffic with --history FILE"
        )
    return lines


def coverage_lines(coverage: "Coverage") -> list[str]:
    """Return what could not be judged, each with its count, cause and remedy; empty if nothing."""
    lines = [
        f"not judged: {row.requests:,} {row.side}s {row.loss.replace('_', ' ')} ({row.fix})"
        for row in coverage.losses()
    ]
    if coverage.unmapped_tenants:
        lines.append(
            f"not judged: {coverage.unmapped_tenants:,} requests without a tenant "
            "(add a rule under `tenancy` in the configuration)"
        )
    for reason, count in coverage.broken_by_reason.items():
        at = [str(s.line) for s in coverage.broken_samples if s.reason == reason and s.line]
        place = f", first at line {at[0]}" if at else ""
        lines.append(f"skipped: {count:,} broken entries, {reason.replace('_', ' ')}{place}")
    for reason, count in coverage.ignored_by_reason.items():
        lines.append(f"left out: {count:,} entries, {reason.replace('_', ' ')}")
    return lines


def _suggest(identifier: str, saved_as: str | None) -> None:
    if saved_as:
        note(f"next: {program()} explain {identifier} --from {saved_as}")
    else:
        note("next: repeat with --save findings.jsonl, then")
        note(f"      {program()} explain {identifier} --from findings.jsonl")
