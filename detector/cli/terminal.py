"""The terminal: what may be written to it, how wide it is, and the progress bar.

Names in findings come from other people's logs, so everything shown on a terminal goes through
`printable`: a tenant id must not move the cursor or turn text around.
"""

import errno
import os
import shlex
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Progress = Callable[[float, str], None]
"""Receives the share done, 0 to 1, and what is being done."""

PIPED_WIDTH = 80
"""Width of tables that do not go to a terminal, unless COLUMNS says otherwise."""

_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def printable(text: str) -> str:
    """`text` with control, direction and other invisible characters as visible escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode("ascii")
        if unicodedata.category(char) in _INVISIBLE
        else char
        for char in text
    )


def program() -> str:
    """Return how the user can call this program again: its name, or its path when not on PATH."""
    called = sys.argv[0]
    return "bleedwatch" if shutil.which("bleedwatch") else shlex.quote(called)


def width() -> int:
    """Columns to write in: the terminal's, or COLUMNS, or 80 when piped."""
    return max(40, shutil.get_terminal_size((PIPED_WIDTH, 24)).columns)


def write(text: str) -> None:
    """Write to stdout, with a final newline; nothing for no text.

    A reader that went away is no error, a stdout that was never open is.
    """
    if not text:
        return
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        forget_stdout()


def forget_stdout() -> None:
    """Send the rest of stdout nowhere, so that the exit does not complain about a closed pipe."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(text: str) -> None:
    """Write a message for people to stderr; lost silently when nobody can read it."""
    if sys.stderr is None:  # print would take stdout
        return
    with suppress(OSError):
        print("\n".join(printable(line) for line in text.split("\n")), file=sys.stderr)


@contextmanager
def progress(label: str) -> Iterator[Progress | None]:
    """Show a progress bar on stderr; yields None when stderr is not a terminal."""
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=1.0)

        def report(share: float, what: str) -> None:
            bar.update(task, completed=min(max(share, 0.0), 1.0), description=printable(what))

        yield report
