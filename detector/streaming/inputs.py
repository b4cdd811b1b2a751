"""One input without tokens of one partition: taken in and finished at once."""

from dataclasses import dataclass


@dataclass(slots=True)
class ClearInput:
    """Runtime samples or engine events: how far they are read.

    What was finished before is taken in again, to rebuild what is known, and not told again.
    """

    finished_below: int
    next: int = 0

    def take(self, offset: int) -> bool:
        """Note a record; False if it was taken before."""
        if offset < self.next:
            return False
        self.next = offset + 1
        return True

    def is_news(self, offset: int) -> bool:
        """True for a record that was not finished before this partition was assigned."""
        return offset >= self.finished_below

    @property
    def is_rebuilt(self) -> bool:
        """True once everything that was finished before has been taken again.

        Where nothing has come there is nothing to take: the window begins behind it.
        """
        return not self.next or self.next >= self.finished_below

    @property
    def done(self) -> int | None:
        """Every record below is finished; None while nothing new is."""
        return self.next if self.next > self.finished_below else None
