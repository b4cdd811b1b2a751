"""Checks of the logs that a sidecar follows: are they there, do they show ids, whose, and when."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from detector.doctor.facts import Facts
from detector.doctor.log_evidence import LogEvidence
from detector.doctor.verdicts import Level, Verdict
from detector.doctor.volumes import volume_of
from ingest.sources.base import Loss

AHEAD_MS: Final = 2_000
"""How far a request may be ahead of the last write: times of a log are whole seconds."""

_OFF: Final = {
    "vllm": "start vLLM with --enable-log-requests; bleedwatch doctor --flags vllm lists the rest",
    "sglang": "start SGLang with --log-requests --log-requests-level 3; bleedwatch doctor --flags "
    "sglang lists the rest",
}

_ON_A_PIPE = "it is a pipe: whoever looks into it takes the lines away from the sidecar"


def requests(facts: Facts) -> Iterator[Verdict]:
    """Every log is there, in a known form, and tells of requests."""
    if not facts.settings.sidecar.files:
        yield Verdict(
            Level.ERROR, "sidecar.files", "no log is followed", "name the logs of the engine"
        )
    elif not facts.logs:
        yield Verdict(
            Level.ERROR,
            ", ".join(facts.settings.sidecar.files),
            "no file matches",
            "start the engine, or correct sidecar.files",
        )
    for log in facts.logs:
        yield _told(log, facts)


def _told(log: LogEvidence, facts: Facts) -> Verdict:
    if log.is_pipe:
        return Verdict(Level.UNKNOWN, log.path, _ON_A_PIPE, "see the health file of the sidecar")
    if log.problem:
        hint = "start the engine, correct sidecar.files, or let this user read it"
        return Verdict(Level.ERROR, log.path, log.problem, hint)
    if not log.size:
        return Verdict(Level.UNKNOWN, log.path, "empty", "send the engine a request")
    if not log.is_known:
        return Verdict(
            Level.ERROR,
            log.path,
            f"the form of its {log.lines:,} last lines is not known",
            "set sidecar.format, or follow the log of the engine",
        )
    return _shown(log, facts)


def _shown(log: LogEvidence, facts: Facts) -> Verdict:
    if not log.requests:
        kind = log.coverage.kind or facts.settings.sidecar.format
        hint = _OFF.get(kind, "let the source write requests, see docs/input-format.md")
        found = f"no request in its {log.lines:,} last lines: request logging seems off"
        return Verdict(Level.ERROR, log.path, found, hint)
    broken = sum(log.coverage.broken_by_reason.values())
    if broken:
        reasons = ", ".join(sorted(log.coverage.broken_by_reason))
        found = f"{broken:,} broken entries beside {log.requests:,} requests: {reasons}"
        return Verdict(Level.WARNING, log.path, found, "see docs/engine-logs.md")
    return Verdict(Level.OK, log.path, f"{log.requests:,} requests in what was looked at")


def token_ids(facts: Facts) -> Iterator[Verdict]:
    """Prompts and answers have all their token ids."""
    for log in facts.logs:
        if not log.requests:
            continue
        # at the cut and at the end requests lack a part without any fault
        losses = [row for row in log.coverage.losses() if row.loss != Loss.NEVER_FINISHED]
        for row in losses:
            what = row.loss.replace("_", " ")
            found = f"{row.side}s {what}: {row.requests:,} of {log.requests:,} requests"
            is_blind = row.requests == log.requests
            yield Verdict(Level.ERROR if is_blind else Level.WARNING, log.path, found, row.fix)
        if not losses:
            yield Verdict(Level.OK, log.path, "whole")


def tenants(facts: Facts) -> Iterator[Verdict]:
    """Every request has a tenant: one without is dropped."""
    for log in facts.logs:
        if not log.requests:
            continue
        found = f"{log.with_tenant:,} of {log.requests:,} requests have a tenant"
        hint = "tenancy.rules must match what the log holds; let a gateway put the tenant there"
        if not log.with_tenant:
            yield Verdict(Level.ERROR, log.path, found, hint)
        elif log.with_tenant < log.requests:
            yield Verdict(Level.WARNING, log.path, found, hint)
        else:
            yield Verdict(Level.OK, log.path, found)


def clock(facts: Facts) -> Iterator[Verdict]:
    """No request is dated after the moment in which the log was last written."""
    refused_ms = facts.settings.stream.ahead_ms
    for log in facts.logs:
        if log.newest_ms is None:
            continue
        ahead_ms = log.newest_ms - log.written_ms
        if ahead_ms <= AHEAD_MS:
            yield Verdict(Level.OK, log.path, "no request is dated ahead of the last write")
            continue
        level = Level.ERROR if ahead_ms > refused_ms else Level.WARNING
        yield Verdict(
            level,
            log.path,
            f"requests are dated up to {ahead_ms / 1000:,.0f} s ahead of the last write; workers "
            f"refuse those {refused_ms / 1000:,.0f} s ahead",
            "set the clock, or TZ=UTC for the engine; SGLang dates exactly with --enable-metrics",
        )


def volume(facts: Facts) -> Iterator[Verdict]:
    """Logs that hold prompts lie in memory, not on a disk."""
    for log in facts.logs:
        if log.is_pipe:
            yield Verdict(Level.OK, log.path, "a pipe: nothing is kept")
        elif not log.problem:
            yield _lies_on(log)


def _lies_on(log: LogEvidence) -> Verdict:
    found = volume_of(Path(log.path))
    if found is None:
        return Verdict(Level.UNKNOWN, log.path, "the system does not tell its volume")
    if found.is_memory:
        return Verdict(Level.OK, log.path, f"on a memory volume ({found.kind})")
    return Verdict(
        Level.WARNING,
        log.path,
        f"on {found.kind} at {found.mounted_at}: prompts stay on a disk",
        "use an emptyDir with medium: Memory, or a FIFO; with sidecar.own_logs what is "
        "acknowledged is freed",
    )
