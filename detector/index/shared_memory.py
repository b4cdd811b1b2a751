"""The memory of a day as one worker of many holds it: its own, and what it is told by others.

Shingles are known by tags and parties by numbers that every worker with the key agrees on, so what
others tell goes straight into the same tables. What is new here waits to be told to others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detector.index.memory import Memory
from detector.index.showings import Showings, Taint, joined
from detector.index.tenant_table import mark_of
from detector.kernels import showings as kernel
from detector.kernels.siphash import tags
from detector.settings import CommonnessSettings
from detector.sketch.shingle import Keys
from detector.sketch.siphash import initial_state
from detector.sketch.tag_keys import TagKeys


@dataclass(slots=True)
class Exchanged:
    """What a worker has told and been told so far."""

    told: int = 0
    """First showings told to the owners of their ranges."""
    heard: int = 0
    """Marks of shared shingles heard from the owners."""
    taints_told: int = 0
    taints_heard: int = 0
    """Tainted shingles told and heard."""


class SharedMemory(Memory):
    """A memory that others share; taking what is to be told is up to the caller, after a batch."""

    def __init__(self, settings: CommonnessSettings, keys: TagKeys) -> None:
        super().__init__(settings)
        self._keys = keys
        self._state = initial_state(keys.shingles)
        self._new: list[Showings] = []
        self._new_taints: list[Taint] = []
        self.exchanged = Exchanged()

    @property
    def state(self) -> NDArray[np.uint64]:
        """The hash state that turns shingle keys into tags."""
        return self._state

    def party(self, name: str) -> int:
        """Return the number that every worker gives to the party of that name."""
        return self._keys.party(name)

    def tagged(self, keys: Keys) -> Keys:
        """Return the tag of every shingle."""
        return tags(self._state, keys)  # type: ignore[no-any-return]

    def shown(self, fresh: Keys, *, party: int, seen_ms: int) -> None:
        """Keep the first showings of a party to be told; a repeat costs nothing."""
        if len(fresh):
            self._new.append(Showings(fresh, np.full(len(fresh), mark_of(party, seen_ms))))

    def taint(self, taint: Taint) -> None:
        """Taint shingles here, and keep that to be told."""
        super().taint(taint)
        self._new_taints.append(taint)

    def take_showings(self) -> Showings:
        """Return the first showings since the last call, without what is tainted by now."""
        new, self._new = joined(self._new), []
        clean = ~self.tainted.contains(new.tags)
        self.exchanged.told += int(np.count_nonzero(clean))
        return Showings(new.tags[clean], new.marks[clean])

    def take_taints(self) -> list[Taint]:
        """Return the taints found here since the last call."""
        new, self._new_taints = self._new_taints, []
        self.exchanged.taints_told += sum(len(taint.tags) for taint in new)
        return new

    def merge(self, heard: Showings, *, now_ms: int) -> None:
        """Learn what others have shown, but nothing tainted; `now_ms` is event time of the teller.

        The memory then reaches back to there, if that is longer than before: what has been loaded
        ends the learning as what was seen here does.
        """
        self.advance(now_ms)
        use = ~self.tainted.contains(heard.tags)
        kernel.merge(
            *self.seen.room_for(len(heard.tags), self.now_ms), heard.tags, use, heard.marks
        )
        self.seen.reach_back(now_ms)
        self.exchanged.heard += len(heard.tags)

    def merge_taint(self, taint: Taint) -> None:
        """Taint what another worker has found; what it had made common is taken back."""
        self.advance(taint.at_ms)
        super().taint(taint)
        self.exchanged.taints_heard += len(taint.tags)
