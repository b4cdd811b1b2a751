"""One input without tokens of one partition: opened and checked, then finished at once."""

from dataclasses import dataclass


@dataclass(slots=True)
class ClearInput:
    """Runtime samples or engine events: how far they are read.

    Nothing is kept of them yet; they are checked so that what is broken is told where it is sent.
    """

    finished_below: int
    next: int = 0

    def take(self, offset: int) -> bool:
        """Note a record; False if it was finished or taken before."""
        if offset < self.next:
            return False
        self.next = offset + 1
        return offset >= self.finished_below

    @property
    def done(self) -> int | None:
        """Every record below is finished; None while nothing new is."""
        return self.next if self.next > self.finished_below else None
