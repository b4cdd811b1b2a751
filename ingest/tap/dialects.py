"""How each engine is asked for token ids, call by call, and what its answer looks like then.

Read from vLLM 0.32 and 0.33 and SGLang 0.5.23; other releases ignore fields that they do not know,
and what they do not give is counted.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


class Form(enum.Enum):
    """Where ids lie in an answer, or in an event of a stream."""

    CHOICES = enum.auto()
    """`prompt_token_ids` of the answer or of each choice, with `token_ids` or (chats of SGLang)
    `response_token_ids`; or both sides in `sglext`."""
    OUTPUT = enum.auto()
    """`prompt_token_ids` and `output_ids`, in a stream all of them so far."""
    MESSAGES = enum.auto()
    """`input_messages` and `output_messages` of a response, each with its `tokens`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One call of one engine. `asks` and `asks_stream`: fields to set, and what each brings."""

    form: Form
    asks: Mapping[str, tuple[str, ...]]
    asks_stream: Mapping[str, tuple[str, ...]]
    is_chat: bool = False
    writes_null: bool = False
    """An answer without ids says null, where another engine leaves the field out."""
    echo_differs: bool = False
    """Asked for ids, the engine does not echo the prompt any more: it is not asked then."""
    numbers_all: bool = False
    """The engine's logs name even the only answer by the id of the request and a number."""
    id_field: str = "request_id"
    id_prefix: str = ""
    isolation: frozenset[str] = field(default_factory=frozenset)


_IDS: Final = {"return_token_ids": ("prompt_token_ids", "token_ids", "response_token_ids")}
_OUTPUT: Final = {"return_prompt_token_ids": ("prompt_token_ids",)}
_MESSAGES: Final = {"enable_response_messages": ("input_messages", "output_messages")}
_EXTENSION: Final = {
    "return_input_ids_in_sglext": ("input_ids",),
    "return_output_ids_in_sglext": ("output_ids",),
}

_VLLM: Final = frozenset({"cache_salt", "session_id"})
_SGLANG: Final = frozenset({"cache_salt", "extra_key", "session_id"})

DIALECTS: Final[Mapping[str, Mapping[str, Dialect]]] = {
    "vllm": {
        "/v1/chat/completions": Dialect(
            form=Form.CHOICES,
            asks=_IDS,
            asks_stream=_IDS,
            is_chat=True,
            writes_null=True,
            isolation=_VLLM,
        ),
        "/v1/completions": Dialect(
            form=Form.CHOICES,
            asks=_IDS,
            asks_stream=_IDS,
            writes_null=True,
            echo_differs=True,
            numbers_all=True,
            isolation=_VLLM,
        ),
        "/v1/responses": Dialect(
            form=Form.MESSAGES,
            asks=_MESSAGES,
            asks_stream=_MESSAGES,
            writes_null=True,
            id_prefix="resp_",
            isolation=_VLLM,
        ),
    },
    "sglang": {
        "/v1/chat/completions": Dialect(
            form=Form.CHOICES,
            asks=_IDS,
            asks_stream=_EXTENSION,  # return_token_ids is refused in streams of chats
            is_chat=True,
            id_field="rid",
            isolation=_SGLANG,
        ),
        "/v1/completions": Dialect(
            form=Form.CHOICES, asks=_IDS, asks_stream=_IDS, id_field="rid", isolation=_SGLANG
        ),
        "/v1/responses": Dialect(
            form=Form.MESSAGES, asks={}, asks_stream={}, id_prefix="resp_", isolation=_SGLANG
        ),
        "/generate": Dialect(
            form=Form.OUTPUT, asks=_OUTPUT, asks_stream=_OUTPUT, id_field="rid", isolation=_SGLANG
        ),
    },
}
"""By kind of engine and path of a POST request."""
