"""Event time: puts records in order, tells late ones, doubts clocks that jump."""

import heapq
from collections.abc import Iterator

from detector.model import Kind, Sequence
from detector.settings import WindowSettings

LEAP_MS = 3_600_000
"""A record this far from the newest one is a suspect: a jumped clock or a real gap in the log."""

AGREEING_SUSPECTS = 3
"""Suspects in a row that agree within LEAP_MS prove that time really moved."""

MAX_HELD_TOKENS = 64_000_000
"""Tokens held at most (256 MB of hashes); beyond, the oldest go on early and are counted."""

_Entry = tuple[int, bool, str, str, int, int, Sequence]


class Sequencer:
    """Releases sequences in event order: prompts at their start, responses at their end.

    The watermark is the newest start seen minus `hold_ms`; a sequence leaves once its own instant
    lies at or before it. Ties go prompt first, then by tenant, request and part, so the order
    never depends on the order of arrival. What comes after its place had passed is released at
    once and still matched against what is there; `late` counts it.

    `live` is for live input, where a record comes when its request ends: then ends tell how far
    time has come, and nothing waits for a later request to start. A log has a prompt together with
    its answer, so there `late` is what comes more than the grace after its request can have ended.
    """

    def __init__(self, *, hold_ms: int, live: WindowSettings | None = None) -> None:
        self._hold_ms = hold_ms
        self._by_end = live is not None
        self._in_time_ms = {Kind.PROMPT: 0, Kind.RESPONSE: 0}
        if live is not None:
            self._in_time_ms = {
                Kind.PROMPT: live.longest_response_ms + live.grace_ms,
                Kind.RESPONSE: live.grace_ms,
            }
        self._heap: list[_Entry] = []
        self._suspects: list[Sequence] = []
        self.newest_ms: int | None = None
        """Newest start, or end, of the records believed so far, None before the first."""
        self._released_ms: int | None = None
        self._counter = 0
        self._held_tokens = 0
        self.late = 0
        self.clock_jumps = 0
        self.forced = 0

    @property
    def watermark_ms(self) -> int | None:
        """Everything up to this instant of event time has been released; None before the first."""
        return None if self.newest_ms is None else self.newest_ms - self._hold_ms

    def push(self, sequence: Sequence) -> Iterator[Sequence]:
        """Take one sequence and yield those whose turn has come."""
        start = sequence.started_at_ms
        if self.newest_ms is None:
            self.newest_ms = start
        if abs(start - self.newest_ms) > LEAP_MS + self._hold_ms:
            self._suspect(sequence)
        else:
            self._suspects_were_wrong()
            self._accept(sequence)
            self.newest_ms = max(self.newest_ms, sequence.ended_at_ms if self._by_end else start)
        yield from self._due()

    def catch_up(self) -> Iterator[Sequence]:
        """Yield everything still held, in order, and go on: what came last had nobody to doubt it.

        Time does not go back by this, and moves on as far as what was held says.
        """
        if self.newest_ms is not None and self._suspects:
            self.newest_ms = max(self.newest_ms, *(one.started_at_ms for one in self._suspects))
        yield from self.drain()

    def drain(self) -> Iterator[Sequence]:
        """Yield everything still held, in order: the input has ended."""
        for sequence in self._suspects:
            self._accept(sequence)
        self._suspects.clear()
        while self._heap:
            yield self._pop()

    def _suspect(self, sequence: Sequence) -> None:
        self._suspects.append(sequence)
        self.clock_jumps += 1
        starts = [suspect.started_at_ms for suspect in self._suspects]
        if max(starts) - min(starts) > LEAP_MS:
            self._accept(self._suspects.pop(0))
        elif len(starts) >= AGREEING_SUSPECTS:
            self.newest_ms = max(starts)
            self._released_ms = None
            self._suspects_were_wrong()

    def _suspects_were_wrong(self) -> None:
        while self._suspects:
            self._accept(self._suspects.pop(0))

    def _accept(self, sequence: Sequence) -> None:
        in_time_ms = sequence.ended_at_ms + self._in_time_ms[sequence.kind]
        if self._released_ms is not None and in_time_ms < self._released_ms:
            self.late += 1
        self._counter += 1
        self._held_tokens += len(sequence.token_hashes)
        entry = (
            sequence.ended_at_ms, sequence.kind is Kind.RESPONSE, sequence.tenant,
            sequence.request_id, sequence.part, self._counter, sequence,
        )  # fmt: skip
        heapq.heappush(self._heap, entry)

    def _due(self) -> Iterator[Sequence]:
        watermark = self.watermark_ms
        while self._heap and watermark is not None and self._heap[0][0] <= watermark:
            yield self._pop()
        while self._held_tokens > MAX_HELD_TOKENS:
            self.forced += 1
            yield self._pop()

    def _pop(self) -> Sequence:
        sequence = heapq.heappop(self._heap)[-1]
        self._held_tokens -= len(sequence.token_hashes)
        if self._released_ms is None or sequence.ended_at_ms > self._released_ms:
            self._released_ms = sequence.ended_at_ms
        return sequence
