"""An engine that costs next to nothing: it answers every request with the same bytes.

Run as a program it prints its port. One event in a write, as engines send them.
"""

import asyncio
import json
from typing import Final

TOKENS: Final = 64
PAUSE_S: Final = 0.002
"""Between the events of a stream: 500 tokens a second, more than any engine gives one client."""

PROMPT: Final = list(range(1_000, 1_200))


def _event(number: int, *, with_ids: bool) -> bytes:
    choice: dict[str, object] = {
        "index": 0,
        "delta": {"content": " word"},
        "logprobs": None,
        "finish_reason": "length" if number == TOKENS - 1 else None,
        "token_ids": [2_000 + number] if with_ids else None,
    }
    told: dict[str, object] = {
        "id": "chatcmpl-0123456789abcdef",
        "object": "chat.completion.chunk",
        "created": 1_790_000_000,
        "model": "fast",
        "choices": [choice],
    }
    if number == 0:
        told["prompt_token_ids"] = PROMPT if with_ids else None
    return b"data: " + json.dumps(told, separators=(",", ":")).encode() + b"\n\n"


def _whole(*, with_ids: bool) -> bytes:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": " word" * TOKENS},
        "finish_reason": "length",
        "token_ids": list(range(2_000, 2_000 + TOKENS)) if with_ids else None,
    }
    told = {
        "id": "chatcmpl-0123456789abcdef",
        "model": "fast",
        "choices": [choice],
        "prompt_token_ids": PROMPT if with_ids else None,
    }
    return json.dumps(told, separators=(",", ":")).encode()


class _Answers:
    """Every answer as it is written, with ids and without."""

    def __init__(self, *, with_ids: bool) -> None:
        whole = _whole(with_ids=with_ids)
        self.whole = (
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n" % len(whole) + whole
        )
        self.head = (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        events = [*(_event(number, with_ids=with_ids) for number in range(TOKENS))]
        self.chunks = [
            b"%x\r\n%s\r\n" % (len(event), event) for event in [*events, b"data: [DONE]\n\n"]
        ]


ANSWERS: Final = {is_asked: _Answers(with_ids=is_asked) for is_asked in (False, True)}


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            answers = ANSWERS[b'"return_token_ids":true' in body]
            if b'"stream":true' not in body:
                writer.write(answers.whole)
                continue
            writer.write(answers.head)
            for piece in answers.chunks:
                writer.write(piece)
                await asyncio.sleep(PAUSE_S)
            writer.write(b"0\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    """Serve until killed."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
