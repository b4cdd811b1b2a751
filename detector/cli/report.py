"""Shows what a replay found: the findings on stdout, what was and was not read on stderr."""

import errno
import json
import os
import shlex
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from detector.cli.exit import FINDINGS, OK
from detector.cli.findings_table import ID_SHOWN, gravest_first, show_findings
from detector.cli.options import FailOn
from detector.cli.output import Format, write_document
from detector.cli.terminal import note, program, write
from detector.cli.words import counted
from detector.errors import InputError

if TYPE_CHECKING:
    from detector.finding import Finding
    from ingest.coverage import Coverage


MIN_TOKENS_FOR_RATE = 1_000_000
"""Fewer tokens say nothing about speed: starting and compiling take longer than searching."""

_SEQUENCE = ("prompt or response", "prompts and responses")


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
    def responses(self) -> int:
        """Responses that were searched."""
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
    def history(self) -> "Coverage | None":
        """What the history could not show, None without one."""
        ...

    @property
    def history_skipped(self) -> int:
        """Sequences of the history that began no earlier than the searched traffic."""
        ...

    @property
    def learning(self) -> bool:
        """Whether confidence was capped for lack of history."""
        ...


def show_report(
    report: Report, form: Format, *, saved_as: str | None = None, told: bool = False
) -> None:
    """Write the findings and the summary; with `saved_as`, a file of findings as well.

    Findings that were `told` as they were made are not written again.
    """
    unsaved: OSError | None = None
    if saved_as:
        try:
            save_findings(report.findings, saved_as)
        except OSError as error:  # what a long search found is shown before this is told
            unsaved, saved_as = error, None
    shown = gravest_first(report.findings)
    if form is Format.TABLE:
        if shown:
            show_findings(shown)
    elif form is Format.JSONL:
        write("" if told else "".join(_json_lines(report.findings)))
    else:
        write_document(_document(report), form)
    for line in _summary(report):
        note(line)
    if form is Format.TABLE and shown:
        _suggest(shown[0].id[:ID_SHOWN], saved_as)
    if unsaved is not None:
        raise unsaved


def check_judged(report: Report) -> None:
    """Raise InputError when no response was searched: to find nothing then means nothing."""
    if report.responses:
        return
    if not report.requests:
        raise InputError(
            "nothing was judged: no request was found",
            hint="is the log empty, or of another --format? docs/engine-logs.md has the flags "
            "engines need",
        )
    read = counted(report.requests, "request was", "requests were")
    raise InputError(
        f"nothing was judged: {read} read, none with a readable response and a tenant",
        hint="the lines above say what was missing; if the log was taken for another, name its "
        "--format",
    )


def exit_code(findings: Sequence["Finding"], fail_on: FailOn) -> int:
    """1 when a finding is as severe as `fail_on` or more so, else 0."""
    from detector.finding import Severity

    if fail_on is FailOn.NEVER:
        return OK
    floor = Severity(fail_on.value).rank
    return FINDINGS if any(finding.severity.rank >= floor for finding in findings) else OK


def show_partial(
    findings: Sequence["Finding"], form: Format, *, saved_as: str | None, told: bool
) -> None:
    """Write what was found before an error ended a search that cannot be repeated."""
    if not findings:
        return
    if saved_as:
        with suppress(OSError):  # what ended the search is told, and what it found is shown
            save_findings(findings, saved_as)
    if form is Format.TABLE:
        show_findings(gravest_first(findings))
    elif not told:
        write("".join(_json_lines(findings)))
    note(f"{counted(len(findings), 'finding')} before the error")


def save_findings(findings: Sequence["Finding"], file: str) -> None:
    """Write findings as JSON lines; a file is whole or not there, and only its owner may read it.

    Links are followed; devices and pipes are written to. Raises OSError that names `file`.
    """
    try:
        if _is_special(Path(file)):
            with Path(file).open("w", encoding="ascii") as stream:
                stream.writelines(_json_lines(findings))
        else:
            _replace(Path(os.path.realpath(file)), _json_lines(findings))
    except OSError as error:
        raise OSError(error.errno, error.strerror, file) from None


def check_savable(file: str) -> None:
    """Raise OSError when `file` can certainly not be written: known before a long search."""
    target = Path(os.path.realpath(file))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), file)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "its folder does not exist", file)
    if not _is_special(target) and not os.access(target.parent, os.W_OK):
        raise PermissionError(errno.EACCES, "its folder cannot be written to", file)


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _replace(target: Path, lines: Iterable[str]) -> None:
    descriptor, scratch = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.writelines(lines)
        Path(scratch).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(scratch).unlink()
        raise


def finding_line(finding: "Finding") -> str:
    """Return a finding as one line of JSON in ASCII, with its line end."""
    import msgspec

    return json.dumps(msgspec.to_builtins(finding)) + "\n"


def _json_lines(findings: Sequence["Finding"]) -> list[str]:
    return list(map(finding_line, findings))


def _document(report: Report) -> dict[str, Any]:
    import msgspec

    return {
        "findings": msgspec.to_builtins(list(report.findings)),
        "requests": report.requests,
        "responses": report.responses,
        "tokens": report.tokens,
        "cpu_seconds": round(report.cpu_seconds, 3),
        "learning": report.learning,
        "late": report.late,
        "clock_jumps": report.clock_jumps,
        "evicted_sequences": report.evicted_sequences,
        "history_skipped": report.history_skipped,
        "coverage": _coverage_document(report.coverage),
        "history": None if report.history is None else _coverage_document(report.history),
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
    lines = [_result(report), *coverage_lines(report.coverage)]
    if report.late:
        lines.append(
            f"late: {counted(report.late, 'record')} came after their time had passed: their log "
            "is out of order or its clock is behind; what came before was judged without them"
        )
    if report.clock_jumps:
        jumped = counted(report.clock_jumps, "record")
        lines.append(f"clock: {jumped} dated hours from the neighbouring ones")
    if report.evicted_sequences:
        lines.append(
            f"not judged: {counted(report.evicted_sequences, *_SEQUENCE)} (left the window early): "
            "give the index more bytes with detection.index.memory_bytes"
        )
    if report.history is not None:
        lines += [f"history: {line}" for line in coverage_lines(report.history)]
    if report.history_skipped:
        lines.append(
            f"history: not learned: {counted(report.history_skipped, *_SEQUENCE)} (no earlier than "
            "the searched traffic): give only earlier traffic, on the same clock"
        )
    if any(one.evidence.thresholds.learning for one in report.findings) or report.learning:
        lines.append(
            "learning: too little history to know what is common, so confidence stays low; "
            "give earlier traffic with --history FILE"
        )
    return lines


def _result(report: Report) -> str:
    found = len(report.findings)
    total = f"{counted(found, 'finding')} ({_by_severity(report.findings)})"
    cost = f"{counted(report.tokens, 'token')}, {report.cpu_seconds:.1f} s CPU"
    if report.cpu_seconds and report.tokens >= MIN_TOKENS_FOR_RATE:
        cost += f", {report.tokens / report.cpu_seconds:,.0f} tokens/s"
    return f"{total if found else 'no findings'} in {counted(report.requests, 'request')} ({cost})"


def _by_severity(findings: Sequence["Finding"]) -> str:
    counts = Counter(finding.severity.value for finding in gravest_first(findings))
    return ", ".join(f"{count:,} {severity}" for severity, count in counts.items())


def coverage_lines(coverage: "Coverage") -> list[str]:
    """Return what could not be judged, each with its count, cause and remedy; empty if nothing."""
    lines = [
        f"not judged: {counted(row.requests, row.side)} ({_spaced(row.loss)}): {row.fix}"
        for row in coverage.losses()
    ]
    if coverage.unmapped_tenants:
        lines.append(
            f"not judged: {counted(coverage.unmapped_tenants, 'request')} (without a tenant): "
            "add a rule under `tenancy` in the configuration; rules there replace the default, "
            "the field `tenant`"
        )
    for reason, count in coverage.broken_by_reason.items():
        at = [str(s.line) for s in coverage.broken_samples if s.reason == reason and s.line]
        place = f", first at line {at[0]}" if at else ""
        broken = counted(count, "broken entry", "broken entries")
        lines.append(f"skipped: {broken} ({_spaced(reason)}{place})")
    for reason, count in coverage.ignored_by_reason.items():
        lines.append(f"left out: {counted(count, 'entry', 'entries')} ({_spaced(reason)})")
    return lines


def _spaced(reason: str) -> str:
    return reason.replace("_", " ")


def _suggest(identifier: str, saved_as: str | None) -> None:
    if saved_as:
        note(f"next: {program()} explain {identifier} --from {shlex.quote(saved_as)}")
    else:
        note("next: repeat with --save findings.jsonl, then")
        note(f"      {program()} explain {identifier} --from findings.jsonl")
