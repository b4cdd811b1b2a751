"""How much of an input may be unreadable before the process must stop rather than drain it.

One bad message is a dead letter. When most of a topic is bad, the fault is on our side more often
than not (a wrong secret, an old version), and reading on would throw away what a fix could read.
"""

import math
from collections import Counter, deque
from typing import Annotated, Final

from pydantic import Field

from detector.errors import RecordError, TooManyDeadLettersError
from detector.settings import Positive, Section
from ingest.dead_letter import reason_of
from ingest.envelope import Unpacked
from ingest.schema_records import Record

SLICES: Final = 12
"""The period moves on in twelfths, 5 s of a minute: finer would cost more and tell no more."""


class DeadLetterSettings(Section):
    """When unreadable input stops a worker."""

    max_share: Annotated[float, Field(gt=0, le=1)] = Field(
        0.5,
        description="A worker stops when more than this share of a topic's messages was unreadable "
        "for the period; 1 never stops it.",
    )
    min_messages: Positive = Field(
        100,
        description="With fewer unreadable messages of a topic within the period the share is not "
        "looked at.",
    )
    period_ms: Positive = Field(60_000, description="The period over which both are counted.")


class _Slice:
    def __init__(self, number: int) -> None:
        self.number = number
        self.messages = 0
        self.bad = 0.0
        self.reasons: Counter[str] = Counter()


class DeadLetterLimit:
    """Counts good and bad messages of each topic over a moving period, in bounded memory.

    Times are seconds of a clock that never goes back.
    """

    def __init__(self, settings: DeadLetterSettings) -> None:
        self._settings = settings
        self._topics: dict[str, deque[_Slice]] = {}

    def count(self, topic: str, unpacked: Unpacked[Record], now_s: float) -> None:
        """Count a message by the share of its records that were refused.

        Raises TooManyDeadLettersError when the topic is bad beyond the limit; the message that was
        one too many must not be committed.
        """
        slices = self._topics.setdefault(topic, deque())
        now = self._slice(slices, now_s)
        now.messages += 1
        now.bad += _bad_share(unpacked)
        now.reasons.update(map(reason_of, unpacked.rejected))
        if unpacked.rejected:
            self._judge(topic, slices, unpacked.rejected[-1])

    def _slice(self, slices: deque[_Slice], now_s: float) -> _Slice:
        number = math.floor(now_s * 1000 * SLICES / self._settings.period_ms)
        if not slices or slices[-1].number != number:
            slices.append(_Slice(number))
        while slices[0].number <= number - SLICES:
            slices.popleft()
        return slices[-1]

    def _judge(self, topic: str, slices: deque[_Slice], last: RecordError) -> None:
        messages = sum(one.messages for one in slices)
        bad = sum(one.bad for one in slices)
        if bad < self._settings.min_messages or bad <= self._settings.max_share * messages:
            return
        reasons = sum((one.reasons for one in slices), Counter[str]())
        told = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common(3))
        raise TooManyDeadLettersError(
            f"{bad:.0f} of the last {messages} messages could not be read ({told})",
            where=topic,
            hint=f"{last.hint or 'look at the dead-letter topic'}; or raise dead_letters.max_share",
        )


def _bad_share(unpacked: Unpacked[Record]) -> float:
    if not unpacked.rejected:
        return 0.0
    good, lost = len(unpacked.records), unpacked.lost
    return 1.0 if not good or lost is None else lost / (good + lost)
