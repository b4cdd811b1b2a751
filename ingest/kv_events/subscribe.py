"""Subscribes to one publisher of KV events over ZeroMQ; asks again for what was missed.

Publishers number their messages and drop them for a reader that is slow. A publisher with a replay
endpoint keeps the last ones (10,000 unless set otherwise).
"""

from collections import Counter, deque
from types import TracebackType
from typing import Final, Self

import zmq

from ingest.kv_events.decode import MAX_PAYLOAD_BYTES
from ingest.kv_events.frames import Frame

MAX_FRAMES: Final = 256
"""Messages taken in one turn, so that logs are read as well."""

MAX_HELD: Final = 4096
"""Messages held while an earlier one is asked for again."""

REPLAY_S: Final = 5.0
"""How long to wait for a replay: an engine answers between two of its steps."""

_NUMBER_BYTES: Final = 8
_END: Final = b"\xff" * _NUMBER_BYTES


class Subscription:
    """Gives the messages of a publisher in order. For one thread; never waits.

    `counts`: frames, broken, gaps, replayed (messages), lost (messages), restarts. Raises ZMQError
    for an endpoint that cannot be used.
    """

    def __init__(
        self, endpoint: str, *, topic: str = "", replay_endpoint: str | None = None
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._context = zmq.Context()
        self._live = self._context.socket(zmq.SUB)
        self._replay: zmq.Socket[bytes] | None = None
        self._replay_endpoint = replay_endpoint
        try:
            self._live.setsockopt(zmq.SUBSCRIBE, topic.encode())
            _set_up(self._live, endpoint)
        except zmq.ZMQError:
            self.close()
            raise
        self._deadline_s = 0.0
        self._next: int | None = None
        self._latest: int | None = None
        """Number of the last message that came live, also of one that was had by a replay."""
        self._held: deque[tuple[int, bytes]] = deque()
        self._again: dict[int, bytes] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the sockets."""
        self._live.close(linger=0)
        self._end_replay()
        self._context.term()

    def poll(self, now_s: float) -> list[Frame]:
        """Return what has come, in order; nothing while an earlier message is asked for again."""
        ready: list[Frame] = []
        for _ in range(MAX_FRAMES):
            if self._replay is not None:
                if not self._replayed(now_s, ready):
                    return ready
            elif self._held:
                self._take(*self._held.popleft(), now_s, ready)
            else:
                parts = _received(self._live)
                if parts is None:
                    break
                numbered = _numbered(parts)
                if numbered is None:
                    self.counts["broken"] += 1
                else:
                    self._take(*numbered, now_s, ready)
        return ready

    def _take(self, number: int, payload: bytes, now_s: float, ready: list[Frame]) -> None:
        """Put one live message in its place."""
        latest, self._latest = self._latest, number
        if self._next is None or number == self._next:
            self._give(number, payload, ready)
        elif number < self._next:
            if latest is not None and latest < number:
                return  # a replay has had it
            self.counts["restarts"] += 1
            self._give(number, payload, ready, is_after_loss=True)
        else:
            self.counts["gaps"] += 1
            if self._replay_endpoint is None:
                self._lose(number, payload, ready)
            else:
                self._ask(self._replay_endpoint, self._next, now_s)
                self._held.appendleft((number, payload))
                self._latest = latest

    def _give(
        self, number: int, payload: bytes, ready: list[Frame], *, is_after_loss: bool = False
    ) -> None:
        self.counts["frames"] += 1
        self._next = number + 1
        ready.append(Frame(payload, is_after_loss))

    def _lose(self, number: int, payload: bytes, ready: list[Frame]) -> None:
        self.counts["lost"] += number - (self._next or 0)
        self._give(number, payload, ready, is_after_loss=True)

    def _ask(self, endpoint: str, first: int, now_s: float) -> None:
        self._replay = self._context.socket(zmq.DEALER)
        _set_up(self._replay, endpoint)
        self._replay.send_multipart([b"", first.to_bytes(_NUMBER_BYTES, "big")])
        self._deadline_s = now_s + REPLAY_S

    def _replayed(self, now_s: float, ready: list[Frame]) -> bool:
        """Take part of a replay; return whether the next message can be taken at once."""
        assert self._replay is not None
        parts = _received(self._replay)
        if parts is None:
            self._hold()
            if now_s < self._deadline_s and len(self._held) < MAX_HELD:
                return False
        elif len(parts) < 2 or parts[-2] != _END:
            numbered = _numbered(parts)
            if numbered is not None and len(self._again) < MAX_HELD:
                self._again[numbered[0]] = numbered[1]
            return True
        self._merge(ready)
        return True

    def _hold(self) -> None:
        """Take live messages, so that the publisher does not drop them meanwhile."""
        while len(self._held) < MAX_HELD:
            parts = _received(self._live)
            if parts is None:
                return
            numbered = _numbered(parts)
            if numbered is None:
                self.counts["broken"] += 1
            else:
                self._held.append(numbered)

    def _merge(self, ready: list[Frame]) -> None:
        """Give what was replayed, then go on with what is held; what is still absent is lost."""
        self._end_replay()
        number, payload = self._held[0]
        again = {one: held for one, held in sorted(self._again.items()) if one >= (self._next or 0)}
        self._again.clear()
        again.setdefault(number, payload)
        for one, content in sorted(again.items()):
            self.counts["replayed"] += one != number
            if one == self._next:
                self._give(one, content, ready)
            else:
                self._lose(one, content, ready)
        self._held.popleft()
        self._latest = number

    def _end_replay(self) -> None:
        if self._replay is not None:
            self._replay.close(linger=0)
            self._replay = None


def _set_up(socket: "zmq.Socket[bytes]", endpoint: str) -> None:
    """Connect, or listen where the endpoint has a wildcard, as publishers do the other way."""
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_PAYLOAD_BYTES)
    if "*" in endpoint:
        socket.bind(endpoint)
    else:
        socket.connect(endpoint)


def _received(socket: "zmq.Socket[bytes]") -> list[bytes] | None:
    try:
        return socket.recv_multipart(zmq.NOBLOCK)
    except zmq.Again:
        return None


def _numbered(parts: list[bytes]) -> tuple[int, bytes] | None:
    """Return number and payload: the last two parts, behind a topic or an empty part."""
    if len(parts) < 2 or len(parts[-2]) != _NUMBER_BYTES:
        return None
    return int.from_bytes(parts[-2], "big"), parts[-1]
