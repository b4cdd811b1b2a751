"""Which logs a sidecar follows: what the patterns match now, each opened where it was left."""

import glob
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from detector.errors import InputError
from ingest.coverage import Coverage
from ingest.sidecar_input import SidecarInput
from ingest.sidecar_settings import SidecarSettings
from ingest.tail.checkpoint import LogMark
from ingest.tail.followed import FollowedLog
from ingest.tail.pipe import PipeLog, is_fifo, open_fifo
from ingest.tail.siblings import is_rotated
from ingest.tail.source import LineSource

LOOK_S: Final = 2.0
"""How often the patterns are looked at: an engine needs longer than that to start."""

MOST_PASSED_OVER: Final = 1_000
"""Files that are told of in the log; of further ones nothing is said."""

STDIN: Final = "-"

_log = logging.getLogger(__name__)

MakeInput = Callable[[LineSource, Coverage, LogMark | None], SidecarInput]


def matching(pattern: str) -> tuple[list[str], list[str]]:
    """Return the files that a pattern matches now, sorted, and those whose name is no text.

    The name of a log stands in records and in the checkpoint, which hold text only.
    """
    paths = sorted(path for path in glob.glob(pattern, recursive=True) if not Path(path).is_dir())
    return [path for path in paths if _is_text(path)], [p for p in paths if not _is_text(p)]


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Tell whether a log is one of those that paths or patterns name."""
    return any(name == pattern or Path(name).match(pattern) for pattern in patterns)


class SidecarInputs:
    """The inputs of a sidecar; files that come later are found. `before` is by name of log.

    Raises InputError for standard input that is closed, and for a FIFO that is named and cannot be
    opened. What only a pattern finds is passed over then, with a line in the log: whoever may write
    into a folder of logs must not end the reading of others.
    """

    def __init__(
        self,
        settings: SidecarSettings,
        make: MakeInput,
        *,
        salt: bytes,
        before: dict[str, LogMark],
    ) -> None:
        self._settings = settings
        self._make = make
        self._salt = salt
        self._before = before
        self._inputs: dict[str, SidecarInput] = {}
        self._looked_s: float | None = None
        self._passed_over: set[str] = set()

    def __iter__(self) -> Iterator[SidecarInput]:
        return iter(self._inputs.values())

    @property
    def are_over(self) -> bool:
        """True if no line can come any more: all inputs are pipes, and their writers have left."""
        return bool(self._inputs) and all(one.log.is_over for one in self)

    @property
    def are_expected(self) -> bool:
        """True if there are logs to follow, whether or not they are there yet."""
        return bool(self._settings.followed)

    def look(self, now_s: float) -> None:
        """Open what the patterns match and is not open yet."""
        if self._looked_s is not None and now_s - self._looked_s < LOOK_S:
            return
        is_first, self._looked_s = self._looked_s is None, now_s
        for name in self._matched():
            if name not in self._inputs:
                try:
                    self._inputs[name] = self._opened(name, is_first=is_first)
                except InputError as error:
                    if name in self._settings.followed:
                        raise
                    self._pass_over(name, error.what)

    def close(self) -> None:
        """Let go of all files."""
        for one in self:
            one.log.close()

    def _matched(self) -> list[str]:
        """Return the logs: what is matched, without the rotated files of others."""
        found: dict[str, None] = {}
        for pattern in self._settings.followed:
            if pattern != STDIN and glob.has_magic(pattern):
                paths, nameless = matching(pattern)
                found.update(dict.fromkeys(paths))
                for path in nameless:
                    self._pass_over(path, "its name is no text")
            else:
                found[pattern] = None
        # the name of a log whose new file is not there yet is known from its checkpoint
        found.update(
            {name: None for name in self._before if name not in found and self._is_ours(name)}
        )
        # one that is open has no file between the rename of a rotation and the writer's reopening
        live = [Path(name) for name in {*found, *self._inputs} if name != STDIN]
        return [name for name in found if name == STDIN or not is_rotated(Path(name), live)]

    def _pass_over(self, name: str, why: str) -> None:
        if name not in self._passed_over and len(self._passed_over) < MOST_PASSED_OVER:
            self._passed_over.add(name)
            _log.warning("%a is not followed: %s", name, why)

    def _is_ours(self, name: str) -> bool:
        return matches(name, self._settings.followed)

    def _opened(self, name: str, *, is_first: bool) -> SidecarInput:
        coverage = Coverage()
        if name == STDIN:
            if sys.stdin is None:
                raise InputError("standard input is closed", where=STDIN)
            pipe = PipeLog(sys.stdin.fileno(), name=STDIN, coverage=coverage, ends=True)
            return self._make(pipe, coverage, None)
        path = Path(name)
        if is_fifo(path):
            try:
                return self._make(open_fifo(path, coverage=coverage), coverage, None)
            except OSError as error:
                raise InputError(
                    f"cannot be read: {(error.strerror or '').lower()}",
                    where=name,
                    hint="give a FIFO that this user may read",
                ) from None
        before = self._before.get(name)
        log = FollowedLog(
            path,
            salt=self._salt,
            coverage=coverage,
            rotate_wait_s=self._settings.rotate_wait_ms / 1000,
            mark=None if before is None else before.mark,
            position=0 if before is None else before.position,
            from_end=is_first and self._settings.start_at == "end",
            owned=self._settings.own_logs and not matches(name, self._settings.audit_files),
        )
        return self._make(log, coverage, before)
