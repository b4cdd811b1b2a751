"""What an engine answers: a sample, its clock, the flags that it tells of itself."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Final

from detector.errors import BleedwatchError, ScrapeError, SettingsError
from ingest.schema_records import RuntimeSample
from ingest.scrape.documents import parse_document
from ingest.scrape.http import Answer
from ingest.scrape.target import Target

FLAG_PATHS: Final = ("/server_info", "/get_server_info")
"""Where SGLang tells its flags, as JSON."""

VERSION_PATHS: Final = {"vllm": "/version", "sglang": "/server_info"}


@dataclass(slots=True)
class EngineEvidence:
    """One engine. `problem` says why it gave no sample; `flags` are what it tells of itself."""

    engine: str
    where: str
    kind: str | None = None
    problem: BleedwatchError | None = None
    endpoint_problems: Mapping[str, ScrapeError] = field(default_factory=dict)
    samples: tuple[RuntimeSample, ...] = ()
    flags: Mapping[str, object] = field(default_factory=dict)
    clock_ahead_s: float | None = None
    """How far its clock is ahead of ours, to a second; None if it does not tell."""

    @property
    def version(self) -> str:
        """Its version, empty if it tells none."""
        return next((one.engine_version for one in self.samples if one.engine_version), "")


def ask(target: Target, *, now_ms: int) -> EngineEvidence:
    """Ask one engine everything. What it does not answer is a problem, never an exception."""
    evidence = EngineEvidence(target.identity.engine, target.endpoint.name)
    try:
        evidence.samples = tuple(target.samples(now_ms))
    except (ScrapeError, SettingsError) as error:
        evidence.problem = error
    evidence.kind = target.kind
    evidence.endpoint_problems = dict(target.problems)
    path = VERSION_PATHS.get(evidence.kind or "")
    if path is not None and evidence.problem is None:
        evidence.flags = _flags(target) if evidence.kind == "sglang" else {}
        evidence.clock_ahead_s = _clock_ahead(target, path)
    return evidence


def _flags(target: Target) -> Mapping[str, object]:
    for path in FLAG_PATHS:
        try:
            content = parse_document(target.endpoint.get(path).body, where=path)
        except (ScrapeError, SettingsError):
            continue
        return content if isinstance(content, dict) else {}
    return {}


def _clock_ahead(target: Target, path: str) -> float | None:
    """Compare the time that an answer tells with the middle of asking for it."""
    began_s = time.time()
    try:
        answer = target.endpoint.get(path)
    except (ScrapeError, SettingsError):
        return None
    return clock_ahead(answer, middle_s=(began_s + time.time()) / 2)


def clock_ahead(answer: Answer, *, middle_s: float) -> float | None:
    """Return how far the `Date` of an answer is ahead; it tells whole seconds, so half is added."""
    try:
        return parsedate_to_datetime(answer.date).timestamp() + 0.5 - middle_s
    except (ValueError, TypeError):
        return None
