"""Traces a response in log files: read once to find it, and once more to find its sources."""

from collections.abc import Sequence as Items

from detector.config.root import Settings
from detector.errors import UsageError
from detector.reading import OnProgress, Reading
from detector.service import STDIN, deployment_table
from detector.trace.model import Traced
from detector.trace.response import Gathering, Wanted
from detector.trace.scan import Scan


def trace_files(
    paths: Items[str],
    wanted: Wanted,
    settings: Settings,
    *,
    log_format: str = "auto",
    engine: str | None = None,
    on_progress: OnProgress | None = None,
) -> Traced:
    """Return the probable sources of a response among what the files hold.

    `wanted.kv_pool` is also the pool of requests whose log names none. Raises InputError for a file
    that cannot be read or a request that is not in them, UsageError.
    """
    if STDIN in paths:
        raise UsageError(
            "standard input can be read only once, and a look-back reads twice",
            where=STDIN,
            hint="write it to a file first",
        )
    table = deployment_table(settings)
    gathering = Gathering(wanted)
    first = Reading(settings, table)
    for sequence in first.sequences(
        paths, log_format=log_format, engine=engine, kv_pool=wanted.kv_pool,
        on_progress=_half(on_progress, 0.0, "looking for the request"),
    ):  # fmt: skip
        gathering.add(sequence)
    response = gathering.response()
    since_ms = response.first.started_at_ms - settings.trace.since_ms
    scan = Scan(response, settings.detection, since_ms=since_ms)
    second = Reading(settings, table)
    for sequence in second.sequences(
        paths, log_format=log_format, engine=engine, kv_pool=wanted.kv_pool,
        on_progress=_half(on_progress, 0.5, "looking for sources"),
    ):  # fmt: skip
        scan.add(sequence)
    return scan.result(unreadable=sum(second.coverage.broken_by_reason.values()))


def _half(on_progress: OnProgress | None, begin: float, what: str) -> OnProgress | None:
    """Return what reports one of two passes as its half of the whole."""
    if on_progress is None:
        return None
    return lambda share, _: on_progress(begin + share / 2, what)
