"""Publishes KV events as engines do: numbered messages, a buffer that can be asked for again."""

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import msgspec
import zmq

END = (-1).to_bytes(8, "big", signed=True)


class Publisher:
    """A PUB socket that knows its readers, and a ROUTER for replays, on free loopback ports."""

    def __init__(self, *, buffered: int = 100, topic: bytes = b"kv", at: str | None = None) -> None:
        self._context = zmq.Context()
        self._live = self._context.socket(zmq.XPUB)
        self._replay = self._context.socket(zmq.ROUTER)
        if at is None:
            port = self._live.bind_to_random_port("tcp://127.0.0.1")
            self.endpoint = f"tcp://127.0.0.1:{port}"
        else:
            self._live.connect(at)
            self.endpoint = at
        port = self._replay.bind_to_random_port("tcp://127.0.0.1")
        self.replay_endpoint = f"tcp://127.0.0.1:{port}"
        self._topic = topic
        self._buffer: deque[tuple[int, bytes]] = deque(maxlen=buffered)
        self.asked: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.close(linger=0)
        self._replay.close(linger=0)
        self._context.term()

    def wait_for_reader(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Wait until a reader has subscribed; one that listens does so when it is asked."""
        for _ in range(1_000):
            meanwhile()
            if self._live.poll(10):
                break
        assert self._live.recv() == b"\x01" + self._topic

    def send(self, number: int, payload: bytes, *, dropped: bool = False) -> None:
        """Publish a message; a dropped one is only in the buffer."""
        if not dropped:
            self.send_raw([self._topic, number.to_bytes(8, "big"), payload])
        self._buffer.append((number, payload))

    def send_raw(self, parts: list[bytes]) -> None:
        self._live.send_multipart(parts)

    def answer(self, *, wait_ms: int = 0) -> bool:
        """Answer one replay request, if there is one."""
        if not self._replay.poll(wait_ms):
            return False
        reader, empty, first = self._replay.recv_multipart()
        assert empty == b""
        start = int.from_bytes(first, "big")
        self.asked.append(start)
        for number, payload in self._buffer:
            if number >= start:
                self._replay.send_multipart([reader, b"", number.to_bytes(8, "big"), payload])
        self._replay.send_multipart([reader, b"", END, b""])
        return True


def batch(*events: object, at_s: float = 1000.0, rank: int = 0) -> bytes:
    """Return a payload as both engines write it."""
    return msgspec.msgpack.encode([at_s, list(events), rank])


def stored(
    blocks: list[int] | list[bytes],
    tokens: list[int],
    *,
    parent: int | bytes | None = None,
    size: int = 4,
    **more: Any,
) -> dict[str, Any]:
    """Return a store of blocks of `size` tokens as a tagged map."""
    return {
        "type": "BlockStored",
        "block_hashes": blocks,
        "parent_block_hash": parent,
        "token_ids": tokens,
        "block_size": size,
        "lora_id": None,
        "medium": "GPU",
        **more,
    }
