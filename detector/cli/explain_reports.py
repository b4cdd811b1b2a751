"""The steps of an explanation where no text was compared: contradictions, and engines' reports."""

from collections.abc import Iterator

from detector.cli.explain_steps import Step, when
from detector.cli.words import ENGINE, counted
from detector.finding import Finding, Party
from detector.rules.ledger import LEDGER


def report_steps(finding: Finding) -> Iterator[Step]:
    """Yield the steps of a finding that rests on what engines and logs told."""
    if finding.sink.kind == ENGINE:
        yield "Which engine", _engine(finding), ()
        yield "What it reported", _numbers(finding), ()
        return
    yield "Which request", _request(finding.sink), ()
    if finding.rule == LEDGER:
        if finding.source != finding.sink:
            yield "Whose memory", _request(finding.source), ()
        yield "What the ledger holds against it", [finding.explanation, *_numbers(finding)], ()
        yield "What decided", ["events about KV blocks alone: no text was compared"], ()
        return
    if finding.source.tenant != finding.sink.tenant:
        yield "The other request with this id", _request(finding.source), ()
    yield "What contradicts itself", [finding.explanation, *_numbers(finding)], ()
    yield "What decided", ["the records of the request alone: no text was compared"], ()


def _engine(finding: Finding) -> list[str]:
    since, until = finding.sink.started_at_ms, finding.sink.ended_at_ms
    return [
        f"engine {finding.engine} of KV pool {finding.kv_pool}",
        f"since {when(since)}, told at {when(until)} by the engine's own clock",
    ]


def _request(party: Party) -> list[str]:
    asked = party.prompt_tokens
    prompt = "" if asked is None else f", {counted(asked, 'prompt token')}"
    tenant, request = party.tenant or "unknown", party.request_id or "unknown"
    return [
        f"tenant {tenant}, request {request}: its {party.kind}{prompt}",
        f"from {when(party.started_at_ms)} to {when(party.ended_at_ms)}",
    ]


def _numbers(finding: Finding) -> list[str]:
    told = finding.runtime or {}
    return [f"{name.replace('_', ' ')}: {value}" for name, value in told.items()]
