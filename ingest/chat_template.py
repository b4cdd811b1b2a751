"""Role spans of a prompt, found by the marker ids of its chat template.

Markers, role names and the line breaks beside them are TEMPLATE; text between a closer and the next
marker belongs to nobody and has no span. Only ids are looked at: no tokenizer is needed.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from detector.model import Role, Span
from detector.settings import Section
from detector.sketch.token_table import checked_ids
from ingest.limits import MAX_SPANS
from ingest.template_families import FAMILIES, MAX_START_TOKENS, Family

MAX_HEADER_TOKENS: Final = 8
"""Longest role name with its header end: names are one or two tokens."""

MAX_FILLER_TOKENS: Final = 2

_HEAD_TOKENS: Final = 1 + MAX_HEADER_TOKENS + MAX_FILLER_TOKENS

MAX_MARKERS: Final = MAX_SPANS // 2
"""More markers than this and the prompt counts as having no template: each makes two spans."""

MAX_RANGE_GAP: Final = 64
"""Marker ids this close are looked for together: special tokens are numbered in a row."""

_Ids = Sequence[int] | NDArray[np.integer[Any]]


class ChatTemplateSettings(Section):
    """Which chat template the prompts follow."""

    family: Literal[
        "auto", "none", "custom", "chatml", "llama3", "deepseek", "mistral", "mistral-spm"
    ] = Field(default="auto", description="`auto` decides prompt by prompt from how it begins.")
    custom: Family | None = Field(
        default=None, description="Marker ids of another family; `auto` tries it first."
    )

    @model_validator(mode="after")
    def _custom_is_given(self) -> Self:
        if self.family == "custom" and self.custom is None:
            raise ValueError("family is custom, but no custom family is given")
        return self


class _Message(NamedTuple):
    """What one marker opens: template up to `content`, then text of `role` (None: nobody's)."""

    content: int
    role: Role | None


class ChatTemplate:
    """Finds spans by the families of one deployment."""

    def __init__(self, settings: ChatTemplateSettings) -> None:
        known = {family.name: family for family in FAMILIES}
        if settings.custom is not None:
            known = {"custom": settings.custom} | known
        self._auto = settings.family == "auto"
        if settings.family == "none":
            chosen: list[Family] = []
        else:
            chosen = list(known.values()) if self._auto else [known[settings.family]]
        self._finders = [_Finder(family) for family in chosen]

    def family(self, prompt_ids: _Ids) -> Family | None:
        """Return the family set, or with `auto` the one that the prompt begins like."""
        finder = self._finder(checked_ids(prompt_ids[:MAX_START_TOKENS]))
        return None if finder is None else finder.family

    def spans(self, prompt_ids: _Ids) -> tuple[Span, ...]:
        """Return ascending, disjoint spans of the prompt; () when its template is not known.

        Not known means: no family, no second marker (a first id alone proves nothing), none of the
        markers that the family needs, or more than MAX_MARKERS markers. Raises RecordError
        ("token_id_range") for ids that are none.
        """
        # the door hands in what it checked: a second look at every id would double the cost
        is_checked = isinstance(prompt_ids, np.ndarray) and prompt_ids.dtype == np.uint32
        ids = np.asarray(prompt_ids) if is_checked else checked_ids(prompt_ids)
        finder = self._finder(ids)
        if finder is None:
            return ()
        positions = finder.positions(ids)
        if not 1 < len(positions) <= MAX_MARKERS:
            return ()
        needs = finder.family.needs
        if needs and not needs.intersection(ids[positions].tolist()):
            return ()
        return _spans(ids, positions, finder.family)

    def _finder(self, ids: NDArray[np.uint32]) -> "_Finder | None":
        if not self._auto:
            return self._finders[0] if self._finders else None
        head = tuple(ids[:MAX_START_TOKENS].tolist())
        return next((finder for finder in self._finders if finder.begins(head)), None)


class _Finder:
    """The markers of one family, grouped into dense id ranges: two comparisons find a group."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._markers = family.markers
        self._ranges: list[tuple[int, int]] = []
        for marker in sorted(self._markers):
            if self._ranges and marker - self._ranges[-1][1] <= MAX_RANGE_GAP:
                self._ranges[-1] = (self._ranges[-1][0], marker)
            else:
                self._ranges.append((marker, marker))

    def begins(self, head: tuple[int, ...]) -> bool:
        """Tell whether a prompt that begins with `head` can be of this family."""
        return any(head[: len(start)] == start for start in self.family.starts)

    def positions(self, ids: NDArray[np.uint32]) -> list[int]:
        """Return the ascending positions of all markers."""
        found: list[int] = []
        for least, most in self._ranges:
            # unsigned subtraction wraps, so one comparison tests both ends of the range
            near = np.flatnonzero((ids - np.uint32(least)) <= np.uint32(most - least))
            tokens = ids[near].tolist()
            found += [
                at
                for at, token in zip(near.tolist(), tokens, strict=True)
                if token in self._markers
            ]
        return found if len(self._ranges) == 1 else sorted(found)


def _spans(ids: NDArray[np.uint32], positions: list[int], family: Family) -> tuple[Span, ...]:
    spans: list[Span] = []
    template_start = positions[0]
    for position, following in zip(positions, [*positions[1:], len(ids)], strict=True):
        head = ids[position : min(following, position + _HEAD_TOKENS)].tolist()
        message = _message(head, family)
        content = position + message.content
        if content == following and following < len(ids):
            continue  # the next marker touches this one: one template span for both
        spans.append(Span(Role.TEMPLATE, template_start, content))
        if message.role is not None and content < following:
            spans.append(Span(message.role, content, following))
        template_start = following
    return tuple(spans)


def _message(head: list[int], family: Family) -> _Message:
    """Read the marker at the start of `head`, which ends before the next marker."""
    marker = head[0]
    if marker in family.headers:
        ends = (at for at in range(1, len(head)) if head[at] in family.header_ends)
        end = next(ends, 0)
        if not 0 < end <= MAX_HEADER_TOKENS:
            return _Message(1, None)
        content = _after(head, end + 1, family.after_header)
        return _Message(content, family.role_names.get(head[1]))
    if marker in family.roles:
        return _Message(1, family.roles[marker])
    return _Message(_after(head, 1, family.after_closer), None)


def _after(head: list[int], start: int, filler: frozenset[int]) -> int:
    end = start
    while end < len(head) and end - start < MAX_FILLER_TOKENS and head[end] in filler:
        end += 1
    return end
