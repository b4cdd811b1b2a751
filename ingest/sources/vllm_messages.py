"""What vLLM's request logger says, per message: prompt seen, received, output, body, aborted."""

import re
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

from detector.errors import RecordError
from ingest.sources.base import Loss
from ingest.sources.literals import LiteralError, parse_ids, skip_string

_ID = r"(\S{1,512})"
_DETAILS = re.compile(f"Request {_ID} details: prompt: ")
_RECEIVED = re.compile(f"Received request {_ID}: ")
_BODY = re.compile(f"Request {_ID} JSON body: ")
_OUTPUT = re.compile(
    f"Generated response {_ID}(?: \\(streaming (delta|complete)\\))?(?= details:|:)"
)
_ABORTED = re.compile(f"Request {_ID} aborted\\.$")
_ABORTED_LIST = re.compile(r"Aborted request\(s\) (.+)\.$")
_IDS = re.compile(r"(?:array\('\w', )?(?:[\[(]([\d, ]*+)[\])]|None)\)?")
_OLD_IDS = ", prompt_token_ids: "
_OLD_TAIL = re.compile(r", (?:prompt_embeds shape|lora_request): ")
_LORA_REQUEST = ", lora_request: "
_CHOICES = re.compile(r"SamplingParams\(n=(\d{1,5}),")
_MAX_TOKENS = re.compile(r"ignore_eos=\w+, max_tokens=(\d{1,9}), min_tokens=")
_LORA = re.compile(r"LoRARequest\(lora_name='([^'\\]{1,256})'")
_FINISH = re.compile(r", finish_reason: (\S{1,64})$")
_NO_GENERATION = ("tokenize-", "detokenize-")


@dataclass(slots=True)
class PromptSeen:
    """The line with prompt ids. `chars` measures the prompt text, None if there was none."""

    request_id: str
    ids: list[int] | None = field(repr=False)
    loss: Loss | None
    chars: int | None = None


@dataclass(slots=True)
class Received:
    """The line that admits a request. `prompt` is set where it holds ids too (up to 0.11)."""

    request_id: str
    choices: int = 1
    max_tokens: int | None = None
    generates: bool = True
    lora: str | None = None
    prompt: PromptSeen | None = None


@dataclass(slots=True)
class Output:
    """An output line. `ended` marks the one that closes an answer or a delta (it has the text)."""

    request_id: str
    mode: Literal["whole", "delta", "complete"]
    ids: list[int] | None = field(repr=False)
    ended: bool
    chars: int | None = None
    finish_reason: str | None = None


@dataclass(slots=True)
class Body:
    """The request body: tenant hints by name, and its length if it was cut short."""

    request_id: str
    identity: dict[str, str] = field(default_factory=dict)
    model: str | None = None
    cut_at: int | None = None


@dataclass(slots=True)
class Aborted:
    """Requests that were cancelled; ids may carry the engine's internal suffix."""

    request_ids: list[str]


Message: TypeAlias = PromptSeen | Received | Output | Body | Aborted


class _BodyFields(msgspec.Struct):
    user: Any = None
    cache_salt: Any = None
    session_id: Any = None
    model: Any = None


_body_decoder = msgspec.json.Decoder(_BodyFields)


def read_message(place: str, message: str) -> Message | None:
    """Read one message, None if it is of no interest. Raises RecordError for a broken one.

    `place` guards against other loggers that quote user text: only the request logger and the
    engine client are believed. A place that is not known ("") is.
    """
    if not place or place.endswith(("logger.py", "logger")):
        return _from_request_logger(message)
    if place.endswith(("async_llm.py", "async_llm")):
        return _aborted(message)
    return None


def _from_request_logger(message: str) -> Message | None:
    if message.startswith("Generated response "):
        return _output(message)
    if message.startswith("Received request "):
        return _received(message)
    if (found := _DETAILS.match(message)) is not None:
        return _prompt(found[1], message, found.end())
    if (found := _BODY.match(message)) is not None:
        return read_body(found[1], message[found.end() :])
    return _aborted(message)


def read_body(request_id: str, body: str) -> Body:
    """Read the tenant hints of a body. A body that was cut has none, and its length tells where."""
    for text in (body, body + "}"):  # some versions lose the last character
        try:
            fields = _body_decoder.decode(text.encode("utf-8", "replace"))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        hints = {"user": fields.user, "cache_salt": fields.cache_salt}
        hints["session_id"] = fields.session_id
        identity = {name: value for name, value in hints.items() if isinstance(value, str)}
        model = fields.model if isinstance(fields.model, str) else None
        return Body(request_id, identity, model)
    return Body(request_id, cut_at=len(body))


def _prompt(request_id: str, message: str, at: int) -> PromptSeen:
    try:
        chars, end = skip_string(message, at)
        ids = _ids(message, _after(message, end, _OLD_IDS), _OLD_TAIL)
    except LiteralError:
        return PromptSeen(request_id, None, Loss.TRUNCATED)
    loss = None if ids is not None else Loss.NOT_LOGGED if chars is None else Loss.TEXT_ONLY
    return PromptSeen(request_id, ids, loss, chars)


def _received(message: str) -> Received:
    found = _RECEIVED.match(message)
    if found is None:
        raise RecordError("id_unreadable", "a request line has no readable id")
    received = Received(found[1], generates=not found[1].startswith(_NO_GENERATION))
    params, old_prompt = message[found.end() :], message.startswith("prompt: ", found.end())
    if old_prompt:
        received.prompt, params = _old_prompt(found[1], message, found.end() + len("prompt: "))
    params, _, lora = params.removeprefix("params: ").rpartition(_LORA_REQUEST)
    if (choices := _CHOICES.match(params)) is not None:
        received.choices = max(1, int(choices[1]))
    limits = _MAX_TOKENS.findall(params)
    if len(limits) == 1:  # two: text of the user's imitates one of them
        received.max_tokens = int(limits[0])
    received.generates &= not params.startswith("PoolingParams")
    if (name := _LORA.match(lora)) is not None:
        received.lora = name[1]
    return received


def _old_prompt(request_id: str, message: str, at: int) -> tuple[PromptSeen, str]:
    """Read "prompt: …, params: …, prompt_token_ids: […], …" and return what follows the prompt."""
    try:
        chars, end = skip_string(message, at)
        ids_at = message.rindex(_OLD_IDS, end)
        ids = _ids(message, ids_at + len(_OLD_IDS), _OLD_TAIL)
        params = message[end + 2 : ids_at] + message[message.rindex(_LORA_REQUEST) :]
    except (LiteralError, ValueError):
        return PromptSeen(request_id, None, Loss.TRUNCATED), ""
    loss = None if ids is not None else Loss.NOT_LOGGED if chars is None else Loss.TEXT_ONLY
    return PromptSeen(request_id, ids, loss, chars), params


def _output(message: str) -> Output:
    found = _OUTPUT.match(message)
    if found is None:
        raise RecordError("id_unreadable", "an output line has no readable id")
    mode: Literal["whole", "delta", "complete"] = "whole"
    if found[2] is not None:
        mode = "delta" if found[2] == "delta" else "complete"
    at = found.end()
    try:
        if message.startswith(" details: output_token_ids: ", at):
            ids = _ids(message, at + len(" details: output_token_ids: "), None)
            return Output(found[1], mode, ids, ended=False)
        chars, end = skip_string(message, _after(message, at, ": output: "))
        ids = None
        if message.startswith(", output_token_ids: ", end):
            ids = _ids(message, end + len(", output_token_ids: "), _FINISH)
    except LiteralError as error:
        raise RecordError("output_unreadable", "an output line does not parse") from error
    finish = _FINISH.search(message, end)
    if finish is None:
        raise RecordError("output_unreadable", "an output line has no finish reason")
    reason = None if finish[1] == "None" else finish[1]
    return Output(found[1], mode, ids, ended=True, chars=chars, finish_reason=reason)


def _after(message: str, at: int, words: str) -> int:
    """Return the position behind `words`, which must stand at `at`."""
    if not message.startswith(words, at):
        raise LiteralError
    return at + len(words)


def _ids(message: str, at: int, tail: re.Pattern[str] | None) -> list[int] | None:
    found = _IDS.match(message, at)
    if found is None:
        raise LiteralError
    if tail is None:
        if found.end() != len(message):
            raise LiteralError
    elif tail.match(message, found.end()) is None:
        raise LiteralError
    if found[1] is None:
        return None
    return parse_ids("[" + found[1].rstrip(", ") + "]")


def _aborted(message: str) -> Aborted | None:
    if (found := _ABORTED.match(message)) is not None:
        return Aborted([found[1]])
    if (found := _ABORTED_LIST.match(message)) is not None:
        return Aborted([part.strip() for part in found[1].split(",")])
    return None
