"""Heartbeats: now and then two requests of reserved tenants, one of which got the other's prompt.

The hashes are drawn anew each time and belong to no tokens, so a heartbeat meets nobody's traffic.
"""

import secrets
from collections.abc import Callable
from typing import Final

import numpy as np

from detector.heartbeat import SINK, SOURCE, pool_of, request_id
from detector.model import EngineId, Hashes, Kind, PoolId, RequestId, Sequence, TenantId
from ingest.limits import MAX_TEXT_CHARS
from ingest.schema_records import SequenceRecord
from ingest.schema_sequence import to_record

SIDE_TOKENS: Final = 80
"""Tokens of each prompt and each response."""

BLED: Final = slice(16, 64)
"""What bleeds of the prompt, and where it lies in the response: far more than is needed."""

STEP_MS: Final = 1_000
"""A request takes so long, and the next one comes so long after it."""

TOKEN_BYTES: Final = 4


class StreamTime:
    """What time it is in the records of one sender: the newest heard of, and what passed since.

    A log that is caught up with is hours behind the clock: a heartbeat dated by the clock would
    make all of it late.
    """

    def __init__(self) -> None:
        self._newest_ms: int | None = None
        self._heard_s = 0.0

    def hear(self, event_ms: int, now_s: float) -> None:
        """Hear of a record. `now_s` is of a clock that never goes back."""
        if self._newest_ms is None or event_ms >= self._passed_ms(self._newest_ms, now_s):
            self._newest_ms, self._heard_s = event_ms, now_s

    def at_ms(self, now_s: float, *, wall_ms: int) -> int:
        """Return the time; never ahead of the wall clock, and that of it before any record."""
        if self._newest_ms is None:
            return wall_ms
        return min(self._passed_ms(self._newest_ms, now_s), wall_ms)

    def _passed_ms(self, newest_ms: int, now_s: float) -> int:
        return newest_ms + int((now_s - self._heard_s) * 1000)


class Heartbeats:
    """Makes the heartbeats of one sender; asked in every turn of a loop, for one thread.

    `key_id` names the key that hashes of the moment are made under, `wall_ms` is the wall clock.
    """

    def __init__(
        self,
        sender: str,
        *,
        every_ms: int,
        time: StreamTime,
        key_id: Callable[[], str],
        wall_ms: Callable[[], int],
    ) -> None:
        self.sender = sender
        self.sent_ms: int | None = None
        """When the last one was made, by the wall clock; None before the first."""
        self._every_s = every_ms / 1000
        self._time = time
        self._key_id = key_id
        self._wall_ms = wall_ms
        self._next_s: float | None = None

    def due(self, now_s: float) -> list[Sequence]:
        """Return a heartbeat if it is time for one, else nothing.

        The first comes a while after the first call: by then is known how old the records are.
        """
        if self._next_s is None:
            self._next_s = now_s + self._every_s
        if now_s < self._next_s:
            return []
        self._next_s = now_s + self._every_s
        self.sent_ms = self._wall_ms()
        at_ms = self._time.at_ms(now_s, wall_ms=self.sent_ms)
        prompt, answer, question, bled = (_drawn() for _ in range(4))
        bled[BLED] = prompt[BLED]
        return [
            *self._request(SOURCE, prompt, answer, at_ms - 2 * STEP_MS),
            *self._request(SINK, question, bled, at_ms),
        ]

    def records(self, now_s: float) -> list[SequenceRecord]:
        """Return the same as records: the feed of a sidecar."""
        return [to_record(one) for one in self.due(now_s)]

    def _request(
        self, tenant: str, prompt: Hashes, response: Hashes, ended_ms: int
    ) -> list[Sequence]:
        started_ms = ended_ms - STEP_MS
        return [
            Sequence(
                tenant=TenantId(tenant),
                request_id=RequestId(request_id(self.sent_ms or 0, tenant)),
                kv_pool=PoolId(pool_of(self.sender)[:MAX_TEXT_CHARS]),
                engine=EngineId(self.sender),
                model="",
                kind=kind,
                started_at_ms=started_ms,
                ended_at_ms=until_ms,
                token_hashes=hashes,
                key_id=self._key_id(),
                prompt_token_count=len(prompt),
            )
            for kind, hashes, until_ms in (
                (Kind.PROMPT, prompt, started_ms),
                (Kind.RESPONSE, response, ended_ms),
            )
        ]


def _drawn() -> Hashes:
    return np.frombuffer(secrets.token_bytes(SIDE_TOKENS * TOKEN_BYTES), np.uint32).copy()
