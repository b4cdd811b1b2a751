"""What the sidecar needs of anything that lines come from: files that rotate, or a pipe."""

from collections.abc import Sequence
from typing import Protocol

from ingest.tail.siblings import FileMark
from ingest.tail.splitter import Line


class LineSource(Protocol):
    """Lines of one log in order; their positions are bytes since it was first followed.

    Times are seconds of a clock that never goes back. For one thread.
    """

    name: str
    can_read_again: bool
    """True if a later start can read on from a place: nothing is lost then by stopping."""

    def poll(self, now_s: float) -> Sequence[Line]:
        """Return lines that have come, none when none have; never waits."""
        ...

    def finish(self) -> Sequence[Line]:
        """Return what stands behind the last newline: nothing comes any more."""
        ...

    @property
    def next_at(self) -> int:
        """Position of the first line that was not returned yet."""
        ...

    @property
    def behind_bytes(self) -> int:
        """How much is there and not read; 0 where nobody can tell."""
        ...

    @property
    def is_behind(self) -> bool:
        """True while something is known to be there that was not read yet."""
        ...

    @property
    def is_there(self) -> bool:
        """True if there is anything that lines can come from."""
        ...

    @property
    def is_over(self) -> bool:
        """True once no line can come any more."""
        ...

    def place(self, position: int) -> FileMark | None:
        """Return where a later start finds a position again; None where it cannot."""
        ...

    def release(self, position: int) -> None:
        """Hear that nothing below a position is needed any more."""
        ...

    def close(self) -> None:
        """Let go of files."""
        ...
