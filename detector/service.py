"""Composition of the embedded pipeline: files in, findings out, no broker and no database."""

import time
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from itertools import chain

import msgspec

from detector.batches import Batches, Released
from detector.config.root import Settings
from detector.errors import InputError, UsageError
from detector.finding import Finding
from detector.index.window import Sequencer
from detector.model import Sequence
from detector.reading import OnProgress, Reading
from detector.settings import DetectionSettings, WindowSettings
from detector.sketch.token_table import Secret, TokenTable
from ingest.coverage import Coverage
from ingest.key_file import ephemeral_secret, load_secret

try:
    from detector.kernels.siphash import tagger
    from detector.match.digests import Digester
    from detector.pipeline import Detector
    from ingest.allow_list import load_allow_lists
except ModuleNotFoundError as error:  # pragma: no cover - depends on what is installed
    if error.name not in ("numba", "llvmlite"):
        raise
    raise UsageError(
        "searching for bleeds needs the compiled kernels",
        hint="install them with: pip install 'bleedwatch[worker]'",
    ) from None

STDIN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """What a replay found and read. Findings are in the order of observation."""

    findings: list[Finding]
    coverage: Coverage
    requests: int
    responses: int
    tokens: int
    cpu_seconds: float
    learning: bool
    late: int
    clock_jumps: int
    evicted_sequences: int
    explained: dict[str, int]
    history: Coverage | None = None
    """What the history could not show, None without one."""
    history_skipped: int = 0
    """Prompts and responses of the history that began no earlier than the searched traffic."""


def replay(
    paths: Items[str],
    settings: Settings,
    *,
    format: str = "auto",  # noqa: A002 - the name of the flag
    engine: str | None = None,
    kv_pool: str | None = None,
    history: Items[str] = (),
    on_progress: OnProgress | None = None,
) -> ReplayReport:
    """Search files for bleeds, after learning what is common from `history`.

    Raises InputError when a file cannot be read or all that was read is broken, UsageError,
    KeyFileError. `cpu_seconds` covers the replay without the learning.
    """
    if [*history, *paths].count(STDIN) > 1:
        raise UsageError("standard input can be read only once", hint="give - once")
    window = settings.detection.window
    table = deployment_table(settings)
    detector = new_detector(settings.detection, table, deployment_digester(settings))
    reading = Reading(settings, table)
    sequences = reading.sequences(
        paths, log_format=format, engine=engine, kv_pool=kv_pool, on_progress=on_progress
    )
    first = next(sequences, None)
    past = Reading(settings, table)
    batches = Batches(settings.detection)
    skipped = learn(
        detector,
        past.sequences(history, log_format=format, on_progress=on_progress),
        window=window,
        batches=batches,
        before_ms=None if first is None else first.started_at_ms,
    )
    began = time.process_time()
    everything = sequences if first is None else chain((first,), sequences)
    report = run(detector, everything, reading, window, batches=batches, began=began)
    if not report.requests and report.coverage.broken_by_reason:
        raise _nothing_but_broken(paths, report.coverage)
    told = past.coverage if history else None
    return replace(report, history=told, history_skipped=skipped)


def learn(
    detector: Detector,
    sequences: Iterable[Sequence],
    *,
    window: WindowSettings,
    batches: Batches,
    before_ms: int | None = None,
) -> int:
    """Teach the detector past traffic in event order, without what a jumped clock has dated.

    What starts at `before_ms` or later is no past but the traffic to search, and would explain its
    own bleeds: it is skipped. Returns how many sequences were.
    """
    skipped = 0

    def past() -> Iterator[Sequence]:
        nonlocal skipped
        for sequence in sequences:
            if before_ms is None or sequence.started_at_ms < before_ms:
                yield sequence
            else:
                skipped += 1

    sequencer = Sequencer(hold_ms=replay_hold_ms(window))
    for (sequence, _), prepared in batches.prepare(_believed(sequencer, past())):
        detector.warm(sequence, prepared)
    return skipped


def _believed(sequencer: Sequencer, sequences: Iterable[Sequence]) -> Iterator[Released]:
    for sequence in sequences:
        for ready in sequencer.push(sequence):
            yield Released(ready, sequencer.newest_ms)
    for ready in sequencer.drain():
        if sequencer.newest_ms is not None and ready.started_at_ms <= sequencer.newest_ms:
            yield Released(ready, sequencer.newest_ms)


def run(
    detector: Detector,
    sequences: Iterable[Sequence],
    reading: Reading,
    window: WindowSettings,
    *,
    batches: Batches,
    began: float,
) -> ReplayReport:
    """Feed sequences through the ordering and the detector; `began` is a process time."""
    sequencer = Sequencer(hold_ms=replay_hold_ms(window))
    findings = surest(detect(detector, sequencer, sequences, batches=batches))
    return ReplayReport(
        findings=sorted(findings, key=lambda one: (one.observed_at_ms, one.id)),
        coverage=reading.coverage,
        requests=reading.requests,
        responses=detector.stats.responses,
        tokens=detector.stats.tokens,
        cpu_seconds=time.process_time() - began,
        learning=detector.learning,
        late=sequencer.late,
        clock_jumps=sequencer.clock_jumps,
        evicted_sequences=detector.evicted_sequences,
        explained=dict(detector.explained),
    )


def _nothing_but_broken(paths: Items[str], coverage: Coverage) -> InputError:
    reasons = ", ".join(reason.replace("_", " ") for reason in coverage.broken_by_reason)
    count = sum(coverage.broken_by_reason.values())
    counted = "1 broken entry" if count == 1 else f"{count:,} broken entries"
    return InputError(
        f"no request could be read: {counted} ({reasons})",
        where=paths[0] if len(paths) == 1 else "",
        hint="check --format, and sources.jsonl in the configuration",
    )


def detect(
    detector: Detector, sequencer: Sequencer, sequences: Iterable[Sequence], *, batches: Batches
) -> Iterable[Finding]:
    """Yield findings as the ordering releases the sequences they rest on.

    The detector's clock is that of the released sequence: by the newest one, which after a gap in
    a log is far ahead, the sources of what was held back would have expired. The newest one only
    tells when a finding was made.
    """
    for (sequence, newest_ms), prepared in batches.prepare(_released(sequencer, sequences)):
        yield from _dated(detector.observe(sequence, prepared), newest_ms)


def _released(sequencer: Sequencer, sequences: Iterable[Sequence]) -> Iterator[Released]:
    for sequence in sequences:
        for ready in sequencer.push(sequence):
            yield Released(ready, sequencer.newest_ms)
    for ready in sequencer.drain():
        yield Released(ready, sequencer.newest_ms)


def _dated(findings: Iterable[Finding], newest_ms: int | None) -> Iterable[Finding]:
    for finding in findings:
        at_ms = max(finding.detected_at_ms, newest_ms or finding.detected_at_ms)
        yield msgspec.structs.replace(finding, detected_at_ms=at_ms)


def surest(findings: Iterable[Finding]) -> list[Finding]:
    """Return the last version of each finding: a repeated id rests on more tokens than before."""
    return list({finding.id: finding for finding in findings}.values())


def replay_hold_ms(window: WindowSettings) -> int:
    """Return how long a replay holds records back: nothing waits for it, so it orders exactly.

    Logs are ordered by start or by end; the two differ by up to the longest response.
    """
    return window.grace_ms + window.longest_response_ms


def new_detector(
    settings: DetectionSettings, table: TokenTable, digester: Digester | None = None
) -> Detector:
    """Build a detector with the allow-lists that the settings name."""
    allowed = load_allow_lists(settings.filter.allow_lists, table, digester)
    return Detector(settings, allowed=allowed, digester=digester)


def deployment_digester(settings: Settings) -> Digester | None:
    """Return what makes digests under the configured secret; None under one that nobody keeps."""
    if settings.key_file is None:
        return None
    keys = load_secret(settings.key_file).keys()
    return Digester(keys.tag_key, key_id=keys.key_id, tagger=tagger)


def deployment_table(settings: Settings) -> TokenTable:
    """Return the token table of the configured secret, or else of a secret for this run only."""
    keys = deployment_secret(settings).keys()
    return TokenTable(keys.hash_key, key_id=keys.key_id)


def deployment_secret(settings: Settings) -> Secret:
    """Return the configured secret, or else a secret for this run only."""
    return ephemeral_secret() if settings.key_file is None else load_secret(settings.key_file)
