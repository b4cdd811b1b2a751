"""Tells the format of a log from its first lines: our JSON lines, a vLLM log or an SGLang log."""

import enum
import re
from collections.abc import Iterable
from typing import Final

from detector.errors import InputError

HEAD_LINES: Final = 64
"""First lines to look at: past the start-up banner of an engine."""

_LOOK_BYTES: Final = 512  # a marker stands at the start of a line; the rest may be megabytes

_VLLM: Final = re.compile(
    # (APIServer pid=24238) INFO 11-29 17:29:56 [request_logger.py:65] ...; a prefix is configurable
    rb"\b(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d (?:\x1b\[[0-9;]*m)?\[[\w./]+:\d+\]"
    # the JSON formatter: {"asctime": ..., "name": "vllm.entrypoints...", ...}
    rb'|^\{.{0,200}"name": ?"vllm\.'
)
_SGLANG: Final = re.compile(
    # [2026-11-29 18:00:21] ..., with ranks: [2026-11-29 18:00:21 DP0 TP0] ...
    rb"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]{0,40}\] "
    # before 0.5.14 the JSON request log has no prefix
    rb'|^\{"timestamp": ?"[^"]{10,40}", ?"event": ?"(?:request|scheduler)\.'
)
_NOTHING: Final = {
    "truncated_stream": "is damaged or cut off before its first line ends",
    "line_too_long": "holds no line of less than 64 MiB",
}
"""Why there are no lines, by the reason for which the first one was lost."""

_JSON_OBJECT: Final = re.compile(rb'^\s*\{\s*(?:"|\})')


class LogFormat(enum.StrEnum):
    """The formats that have a reader; the values are those of --format."""

    JSONL = "jsonl"
    VLLM = "vllm"
    SGLANG = "sglang"


def detect_format(
    first_lines: Iterable[bytes], *, where: str = "-", lost: str | None = None
) -> LogFormat:
    """Return the format that most of the first lines show; lines of no known form are passed over.

    An engine's own line outweighs a plain JSON object: engines log both. `lost` says why a line
    before these could not be read. Raises InputError when no line is recognised.
    """
    counts = dict.fromkeys(LogFormat, 0)
    lines = list(first_lines)
    if not any(line.strip() for line in lines):
        raise InputError(
            _NOTHING.get(lost or "", "is empty, or begins with empty lines"),
            where=where,
            hint=f"leave it out, or name its format with --format {'|'.join(LogFormat)}",
        )
    for line in lines:
        seen = _format_of(line[:_LOOK_BYTES])
        if seen is not None:
            counts[seen] += 1
    engine = max((LogFormat.VLLM, LogFormat.SGLANG), key=counts.__getitem__)
    chosen = engine if counts[engine] else LogFormat.JSONL
    if not counts[chosen]:
        if any(b"\0" in line for line in lines):
            raise InputError(
                "is no text in UTF-8: its first lines hold zero bytes",
                where=where,
                hint="give the log as text; it may be compressed with gzip or zstd, nothing else",
            )
        raise InputError(
            "the format is not recognised from the first lines",
            where=where,
            hint=f"name it with --format {'|'.join(LogFormat)}",
        )
    return chosen


def is_engine_line(line: bytes) -> bool:
    """Tell whether a line begins as those of vLLM or SGLang do, time and all."""
    return _format_of(line[:_LOOK_BYTES]) in (LogFormat.VLLM, LogFormat.SGLANG)


def _format_of(line: bytes) -> LogFormat | None:
    if _SGLANG.search(line):
        return LogFormat.SGLANG
    if _VLLM.search(line):
        return LogFormat.VLLM
    return LogFormat.JSONL if _JSON_OBJECT.match(line) else None
