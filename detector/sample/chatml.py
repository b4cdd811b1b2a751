"""Chat messages as ChatML token ids, and the spans of a prompt back from its markers."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from detector.model import Role, Span
from detector.sample.tokenizer import ASSISTANT, IM_END, IM_START, NEWLINE, SYSTEM, USER

_ROLE_IDS = {Role.SYSTEM: SYSTEM, Role.USER: USER, Role.ASSISTANT: ASSISTANT}
_ROLES = {number: role for role, number in _ROLE_IDS.items()}

HEADER_TOKENS = 3
"""Marker, role word and newline before every message's content."""


class Message(NamedTuple):
    """One message: `role` is system, user or assistant; `ids` is its content alone."""

    role: Role
    ids: tuple[int, ...]


def render(messages: Iterable[Message]) -> tuple[int, ...]:
    """Return the prompt for `messages`, ending with the open header of the assistant's answer."""
    ids: list[int] = []
    for message in messages:
        ids += (IM_START, _ROLE_IDS[message.role], NEWLINE)
        ids += message.ids
        ids += (IM_END, NEWLINE)
    ids += (IM_START, ASSISTANT, NEWLINE)
    return tuple(ids)


def content_spans(prompt_ids: tuple[int, ...]) -> Iterator[Span]:
    """Yield the content of every closed message in a prompt made by `render`, in order."""
    start = 0
    while start + HEADER_TOKENS < len(prompt_ids):
        role = _ROLES[prompt_ids[start + 1]]
        first = start + HEADER_TOKENS
        try:
            end = prompt_ids.index(IM_END, first)
        except ValueError:
            return
        yield Span(role, first, end)
        start = end + 2


def messages_of(prompt_ids: tuple[int, ...]) -> tuple[Message, ...]:
    """Return the messages that `render` made `prompt_ids` from."""
    return tuple(
        Message(span.role, prompt_ids[span.start : span.end]) for span in content_spans(prompt_ids)
    )
