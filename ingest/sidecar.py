"""The loop of a sidecar: lines in, messages out; the checkpoint moves once these are safe.

Nothing is forgotten before it is safe: a checkpoint says how far every log was given away at one
moment, and is written when every message sent up to that moment has been acknowledged. So a crash
repeats and never skips; repeats carry the ids that they had.
"""

import math
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from detector.errors import InputError
from detector.sketch.token_table import TokenTable
from ingest.sidecar_inputs import SidecarInputs
from ingest.sidecar_sending import RETRY_S, Sending, SidecarRecord
from ingest.sidecar_settings import SidecarSettings
from ingest.tail.checkpoint import CheckpointFile, LogMark
from ingest.tail.pipe import PipeLog

Feed = Callable[[float], Iterable[SidecarRecord]]
"""Gives records that do not come from lines, such as samples; asked in every turn, never waits."""

READ_SHARE: Final = 0.5
"""How much of the grace period may be spent on reading on; the rest is for acknowledgements."""

SETTLE_S: Final = 0.02
"""How often a sidecar that is about to end looks whether all is acknowledged."""


class _Point(NamedTuple):
    """How far all logs were given away when `number` messages had been sent."""

    number: int
    positions: dict[str, int]
    marks: dict[str, LogMark]


class Sidecar:
    """Follows logs until it is told to stop. `table` gives the token table of the moment.

    `on_turn` is called in every turn, for health. Times are seconds of `clock`, which never goes
    back. For one thread.
    """

    def __init__(
        self,
        inputs: SidecarInputs,
        sending: Sending,
        settings: SidecarSettings,
        *,
        table: Callable[[float], TokenTable],
        checkpoint: CheckpointFile | None,
        feeds: Iterable[Feed] = (),
        on_turn: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.inputs = inputs
        self.sending = sending
        self.discarded_bytes = 0
        """What came through pipes while the broker was away and nothing more could be held."""
        self._settings = settings
        self._table = table
        self._checkpoint = checkpoint
        self._feeds = tuple(feeds)
        self._on_turn = on_turn
        self._clock = clock
        self.checkpoint_problem: InputError | None = None
        """Why the checkpoint could not be written; it is tried again."""
        self._point: _Point | None = None
        self._pointed_s = -math.inf  # the first checkpoint comes at once: it names the first file

    def run(self, stopped: Callable[[], bool]) -> None:
        """Work until `stopped` says so or no input can bring any more; then end in order."""
        while not stopped() and not self.inputs.are_over:
            if not self.turn():
                time.sleep(self._settings.poll_ms / 1000)
        self.end()

    def turn(self) -> bool:
        """Read what has come and send what is due; return whether anything had come."""
        now_s = self._clock()
        self.inputs.look(now_s)
        has_read = self._read(now_s)
        for feed in self._feeds:
            self.sending.add(feed(now_s), now_s)
        self.sending.due(now_s)
        self._note(now_s)
        self._on_turn()
        return has_read

    def end(self) -> None:
        """Read on what is there, send everything and wait for it, within the grace period.

        Requests without an end are sent as they are. Of logs that can be read again the checkpoint
        stays before them: a later start reads them whole.
        """
        began_s = self._clock()
        grace_s = self._settings.grace_ms / 1000
        while self._clock() - began_s < grace_s * READ_SHARE:
            if not self.turn():
                if not any(one.log.is_behind for one in self.inputs):
                    break
                time.sleep(SETTLE_S)
        now_s = self._clock()
        positions, marks = self._reached()
        for one in self.inputs:
            self.sending.add(one.finish(self._table(now_s)), now_s)
        self._point = _Point(self.sending.drain(), positions, marks)
        while not self._settled() and self._clock() - began_s < grace_s:
            self.sending.due(self._clock())
            time.sleep(SETTLE_S)

    def _read(self, now_s: float) -> bool:
        table = self._table(now_s)
        has_read = False
        for one in self.inputs:
            if not self.sending.is_full:
                before = one.log.next_at
                self.sending.add(one.poll(table, now_s), now_s)
                has_read |= one.log.next_at > before
            elif isinstance(one.log, PipeLog):
                # who writes must not wait for us
                self.discarded_bytes += one.log.discard()
        return has_read

    def _note(self, now_s: float) -> None:
        """Write the checkpoint when what it waits for is safe, and begin the next one."""
        if self._point is not None:
            if self.checkpoint_problem is None or now_s - self._pointed_s >= RETRY_S:
                self._pointed_s = now_s
                self._settled()
        elif now_s - self._pointed_s >= self._settings.checkpoint_ms / 1000:
            self._pointed_s = now_s
            positions, marks = self._reached()
            self._point = _Point(self.sending.drain(), positions, marks)
            self._settled()

    def _reached(self) -> tuple[dict[str, int], dict[str, LogMark]]:
        reached = {one.log.name: one.reached() for one in self.inputs}
        positions = {name: one.position for name, one in reached.items()}
        return positions, {name: one.mark for name, one in reached.items() if one.mark is not None}

    def _settled(self) -> bool:
        """Write the checkpoint that is due if all it stands for is safe; True if none is left."""
        point = self._point
        if point is None:
            return True
        if not self.sending.is_safe(point.number):
            return False
        if self._checkpoint is not None and point.marks != self._checkpoint.logs:
            try:
                self._checkpoint.write(point.marks)
            except InputError as error:
                self.checkpoint_problem = error
                return False
        self.checkpoint_problem = None
        for one in self.inputs:
            if one.log.name in point.positions:
                one.release(point.positions[one.log.name])
        self._point = None
        return True
