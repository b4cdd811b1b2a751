"""What clients send in these tests: one body for each call, as both engines take it."""

from typing import Any, Final

Body = dict[str, Any]

CHAT: Final = "/v1/chat/completions"
TEXT: Final = "/v1/completions"
GENERATE: Final = "/generate"

CALLS: Final = (
    ("vllm", CHAT, False),
    ("vllm", CHAT, True),
    ("vllm", TEXT, False),
    ("vllm", TEXT, True),
    ("sglang", CHAT, False),
    ("sglang", CHAT, True),
    ("sglang", TEXT, False),
    ("sglang", TEXT, True),
    ("sglang", GENERATE, False),
    ("sglang", GENERATE, True),
)
"""Kind of engine, path, and whether it streams."""


def body(path: str, *, stream: bool, words: str = "import class return", tokens: int = 6) -> Body:
    """Return a request for so many tokens."""
    if path == GENERATE:
        return {"text": words, "sampling_params": {"max_new_tokens": tokens}, "stream": stream}
    asked: Body = {"model": "sim-8b", "max_tokens": tokens, "stream": stream}
    if path == CHAT:
        return asked | {"messages": [{"role": "user", "content": words}]}
    return asked | {"prompt": words}
