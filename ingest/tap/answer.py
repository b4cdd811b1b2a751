"""Token ids in an answer, or an event of a stream, and the same without what was not asked."""

from dataclasses import dataclass, field

import msgspec

from ingest.tap.dialects import Dialect, Form
from ingest.tap.members import (
    NULL,
    Members,
    ids,
    is_null,
    members,
    number,
    objects,
    text,
    written,
)


@dataclass(slots=True)
class SeenChoice:
    """One of the answers to a request. `is_all`: these are all ids so far, not the next ones."""

    index: int = 0
    prompt: list[int] | None = None
    response: list[int] | None = None
    finish_reason: str | None = None
    is_all: bool = False

    def __repr__(self) -> str:
        return f"SeenChoice({self.index})"


@dataclass(slots=True)
class Seen:
    """What one answer or event told. The repr shows no ids."""

    choices: list[SeenChoice] = field(default_factory=list)
    request_id: str | None = None
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    status: int | None = None
    """Status of an error that is told inside an answer."""


def read(data: bytes, dialect: Dialect, hidden: frozenset[str]) -> tuple[Seen, bytes | None]:
    """Return what an answer tells, and the answer as the client asked for it.

    None for an event that would not have been sent. Raises what msgspec does for bytes that are no
    JSON object or list of objects.
    """
    if dialect.form is Form.OUTPUT and data.lstrip()[:1] == b"[":
        whole = [_output(one, hidden, at) for at, one in enumerate(objects(msgspec.Raw(data)))]
        seen = Seen([choice for one, _ in whole for choice in one.choices])
        if whole:
            seen.request_id, seen.model = whole[0][0].request_id, whole[0][0].model
        return seen, msgspec.json.encode([kept for _, kept in whole]) if hidden else data
    top = members(data)
    if dialect.form is Form.OUTPUT:
        seen, kept = _output(top, hidden, 0)
        return seen, msgspec.json.encode(kept) if kept is not top else data
    if dialect.form is Form.MESSAGES:
        return _response(top, data, hidden)
    return _choices(top, data, dialect, hidden)


def _choices(
    top: Members, data: bytes, dialect: Dialect, hidden: frozenset[str]
) -> tuple[Seen, bytes | None]:
    choices = objects(top.get("choices"))
    seen = _head(top)
    prompt = ids(top.get("prompt_token_ids"))
    for one in choices:
        own = ids(one.get("prompt_token_ids"))
        seen.choices.append(
            SeenChoice(
                number(one.get("index")) or 0,
                prompt if own is None else own,
                ids(one.get("token_ids", one.get("response_token_ids"))),
                text(one.get("finish_reason")),
            )
        )
    extension = None if is_null(top.get("sglext")) else members(top["sglext"])
    if extension is not None:
        _extended(seen, extension)
    is_changed = _hide(top, hidden, dialect)
    if sum(_hide(one, hidden, dialect) for one in choices):
        top["choices"] = written(choices)
        is_changed = True
    if extension is not None and _hide(extension, hidden, dialect):
        is_changed = True
        if extension:
            top["sglext"] = written(extension)
        else:
            del top["sglext"]
            if not choices and "usage" not in top:
                return seen, None
    if hidden and dialect.writes_null and choices and all(map(_says_nothing, choices)):
        return seen, None
    return seen, msgspec.json.encode(top) if is_changed else data


def _says_nothing(choice: Members) -> bool:
    """Tell whether vLLM sent a piece of a stream for its ids alone."""
    return (
        "delta" in choice
        and bytes(choice["delta"]) == b"{}"
        and is_null(choice.get("finish_reason"))
        and is_null(choice.get("logprobs"))
    )


def _extended(seen: Seen, extension: Members) -> None:
    """Add the ids of SGLang's extension, which comes once, behind everything else."""
    prompt = ids(extension.get("input_ids"))
    outputs = _lists(extension.get("output_ids"))
    for index, output in enumerate(outputs or ([None] if prompt is not None else [])):
        seen.choices.append(SeenChoice(index, prompt, output, is_all=True))


def _lists(value: msgspec.Raw | None) -> list[list[int] | None]:
    """Return lists of ids, one for each choice; a single list is that of the only choice."""
    if value is None:
        return []
    flat = ids(value)
    if flat:
        return [flat]
    return [ids(one) for one in msgspec.json.decode(value, type=list[msgspec.Raw] | None) or []]


def _output(top: Members, hidden: frozenset[str], at: int) -> tuple[Seen, Members]:
    seen = Seen()
    meta = {} if is_null(top.get("meta_info")) else members(top["meta_info"])
    seen.request_id = text(meta.get("id"))
    seen.prompt_tokens = number(meta.get("prompt_tokens"))
    seen.completion_tokens = number(meta.get("completion_tokens"))
    seen.status = _told_status(top)
    reason = {} if is_null(meta.get("finish_reason")) else members(meta["finish_reason"])
    response = ids(top.get("output_ids"))
    if response is not None:
        # in a stream an engine tells all ids again and again, or with a flag the next ones only
        is_all = len(response) == seen.completion_tokens
        index = number(top.get("index"))
        seen.choices.append(
            SeenChoice(
                at if index is None else index,
                ids(top.get("prompt_token_ids")),
                response,
                text(reason.get("type")),
                is_all,
            )
        )
    kept = {name: value for name, value in top.items() if name not in hidden}
    return seen, kept if len(kept) < len(top) else top


def _response(top: Members, data: bytes, hidden: frozenset[str]) -> tuple[Seen, bytes]:
    is_event = not is_null(top.get("response"))
    body = members(top["response"]) if is_event else top
    seen = _head(body)
    prompt, response = (_only_tokens(body.get(f"{side}_messages")) for side in ("input", "output"))
    if prompt is not None or response is not None:
        seen.choices.append(SeenChoice(0, prompt, response, text(body.get("status")), is_all=True))
    shown = [name for name in hidden if not is_null(body.get(name))]
    if not shown:
        return seen, data
    for name in shown:
        body[name] = NULL
    return seen, msgspec.json.encode(top | {"response": written(body)} if is_event else body)


def _only_tokens(value: msgspec.Raw | None) -> list[int] | None:
    """Return the tokens of a side that is one message: with tools it is several, in parts."""
    said = objects(value)
    return ids(said[0].get("tokens")) if len(said) == 1 else None


def _head(top: Members) -> Seen:
    usage = {} if is_null(top.get("usage")) else members(top["usage"])
    return Seen(
        request_id=text(top.get("id")),
        model=text(top.get("model")),
        prompt_tokens=number(usage.get("prompt_tokens", usage.get("input_tokens"))),
        completion_tokens=number(usage.get("completion_tokens", usage.get("output_tokens"))),
        status=_told_status(top),
    )


def _told_status(top: Members) -> int | None:
    """Return the status of an error that comes under another one: a stream has begun with 200."""
    return None if is_null(top.get("error")) else number(members(top["error"]).get("code")) or 500


def _hide(one: Members, hidden: frozenset[str], dialect: Dialect) -> bool:
    """Take out what is hidden; return whether there was anything."""
    shown = [name for name in hidden if name in one and not is_null(one[name])]
    for name in shown:
        if dialect.writes_null:
            one[name] = NULL
        else:
            del one[name]
    return bool(shown)
