"""Exit codes, and how every way of failing ends: one message on stderr, never a traceback.

0 nothing found, 1 findings at or above --fail-on, 2 usage, configuration or input error,
130 interrupted, 129 or 143 ended by SIGHUP or SIGTERM. A reader of stdout that goes away
(`| head`) is no failure.
"""

import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from types import FrameType
from typing import NoReturn

from detector.cli.terminal import forget_stdout, note, printable
from detector.errors import BleedwatchError

OK = 0
FINDINGS = 1
ERROR = 2
INTERRUPTED = 130


def exit_code_of(command: Callable[[], object]) -> int:
    """Run a command line and return its exit code; what went wrong is told on stderr."""
    try:
        command()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else OK if stop.code is None else ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        forget_stdout()
        return OK
    except Exception as error:  # noqa: BLE001 - the last line of defence, by design
        _tell(error)
        return ERROR
    return OK


def _tell(error: Exception) -> None:
    if isinstance(error, BleedwatchError):
        _tell_problems(getattr(error, "problems", [error]))
    elif isinstance(error, OSError):
        reason = (error.strerror or type(error).__name__).lower()
        _tell_problems([BleedwatchError(reason, where=str(error.filename or ""))])
    elif isinstance(error, MemoryError):
        hint = "lower detection.index.memory_bytes"
        _tell_problems([BleedwatchError("out of memory", hint=hint)])
    else:
        _tell_fault(error)


def _tell_problems(problems: Iterable[BleedwatchError]) -> None:
    for problem in problems:
        place = f"{printable(problem.where)}: " if problem.where else ""
        note(f"error: {place}{problem.what}")
        if problem.hint:
            note(f"  next: {problem.hint}")


def _tell_fault(error: Exception) -> None:
    """Say where a defect of ours happened, without its message, which may quote tokens."""
    note(f"error: internal fault ({type(error).__name__}); this is a bug in bleedwatch")
    for frame in traceback.extract_tb(error.__traceback__)[-8:]:
        note(f"  at {frame.filename}:{frame.lineno} in {frame.name}")
    note("  next: report these lines; they hold no data")


def run_program(command: Callable[[], object]) -> None:
    """Run `command` as the whole program."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP, and that stays
            signal.signal(number, _stop)
    sys.exit(exit_code_of(command))


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    """End in order, so that temporary files are removed."""
    raise SystemExit(128 + number)
