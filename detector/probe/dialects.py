"""What is asked in the two forms that engines understand, and what their answers say.

Prompts are token ids, so that a length is exact. Both forms take them: `/v1/completions` of vLLM,
SGLang and others, and SGLang's own `/generate`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

Body = dict[str, Any]

MAX_ID_CHARS: Final = 200
"""Of the id of an answer: those of engines have 40."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request of a tenant. `salt` separates the tenants' cached prefixes, empty for none."""

    prompt: Sequence[int]
    max_tokens: int
    salt: str = ""
    temperature: float = 0.0
    goes_on: bool = False
    """Whether it writes on behind what it takes for the end."""
    is_streamed: bool = False


class Answer(NamedTuple):
    """What an engine said, None where it did not: ids, and how many of the prompt it read."""

    request_id: str
    ids: tuple[int, ...] | None
    prompt_tokens: int | None
    cached_tokens: int | None


class Dialect(NamedTuple):
    """One form of asking. `model` is the name of the model as the engine tells it."""

    name: str
    path: str
    model: str

    def body(self, asked: Question) -> Body:
        """Return what is sent."""
        return _generate(asked) if self.name == "sglang" else _completion(asked, self.model)

    def answer(self, said: object) -> Answer | None:
        """Return what a body says; None for what is no answer."""
        if not isinstance(said, dict):
            return None
        return _generated(said) if self.name == "sglang" else _completed(said)


def openai(model: str) -> Dialect:
    """Return the form that most engines share."""
    return Dialect("openai", "/v1/completions", model)


SGLANG: Final = Dialect("sglang", "/generate", "")
"""SGLang's own form."""


def _completion(asked: Question, model: str) -> Body:
    body: Body = {
        "model": model,
        "prompt": list(asked.prompt),
        "max_tokens": asked.max_tokens,
        "temperature": asked.temperature,
        "return_token_ids": True,
        "stream": asked.is_streamed,
    }
    if asked.goes_on:
        body["ignore_eos"] = True
    return body | ({"cache_salt": asked.salt} if asked.salt else {})


def _generate(asked: Question) -> Body:
    sampling = {
        "max_new_tokens": asked.max_tokens,
        "temperature": asked.temperature,
        "ignore_eos": asked.goes_on,
    }
    body: Body = {
        "input_ids": list(asked.prompt),
        "sampling_params": sampling,
        "stream": asked.is_streamed,
    }
    return body | ({"extra_key": asked.salt} if asked.salt else {})


def _completed(said: Body) -> Answer | None:
    choices = said.get("choices")
    if not (isinstance(choices, list) and choices and isinstance(choices[0], dict)):
        return None
    usage = _object(said.get("usage"))
    details = _object(usage.get("prompt_tokens_details"))
    return Answer(
        _name(said.get("id")),
        _ids(choices[0].get("token_ids")),
        _count(usage.get("prompt_tokens")),
        _count(details.get("cached_tokens")),
    )


def _generated(said: Body) -> Answer | None:
    if "meta_info" not in said:
        return None
    about = _object(said["meta_info"])
    return Answer(
        _name(about.get("id")),
        _ids(said.get("output_ids")),
        _count(about.get("prompt_tokens")),
        _count(about.get("cached_tokens")),
    )


def _object(value: object) -> Body:
    return value if isinstance(value, dict) else {}


def _name(value: object) -> str:
    return value[:MAX_ID_CHARS] if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _ids(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not all(isinstance(one, int) for one in value):
        return None
    return tuple(value)
