"""Role spans of a prompt, found by the marker ids of its chat template.

Markers, role names and the line breaks beside them are TEMPLATE; text between a closer and the next
marker belongs to nobody and has no span. Only ids are looked at: no tokenizer is needed.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from detector.model import Role, Span
from detector.settings import Section
from detector.sketch.token_table import checked_ids
from ingest.limits import MAX_SPANS
from ingest.template_families import FAMILIES, MAX_START_TOKENS, Family

MAX_FILLER_TOKENS: Final = 2

MAX_MARKERS: Final = MAX_SPANS // 2
"""More markers than this and the prompt counts as having no template: each makes two spans."""

MAX_RANGE_GAP: Final = 64
"""Marker ids this close are looked for together: special tokens are numbered in a row."""

MAX_WHOLE_TOKENS: Final = 1024

MAX_SEAM_CHECKS: Final = 256
"""Most places looked at one by one for a seam in a prompt whose beginning no family has."""

_TEMPLATE: Final = Role.TEMPLATE

_Ids = Sequence[int] | NDArray[np.integer[Any]]


class ChatTemplateSettings(Section):
    """Which chat template the prompts follow."""

    family: Literal[
        "auto",
        "none",
        "custom",
        "chatml",
        "llama3",
        "deepseek",
        "mistral",
        "mistral-spm",
        "yi",
        "internlm2",
        "gemma2",
        "gemma3",
        "glm4",
        "chatglm3",
        "phi3",
        "phi4",
        "phi4-mini",
        "gpt-oss",
        "llama4",
        "command-r",
        "kimi-k2",
    ] = Field(default="auto", description="`auto` decides prompt by prompt from how it begins.")
    custom: Family | None = Field(
        default=None, description="Marker ids of another family; `auto` tries it first."
    )

    @model_validator(mode="after")
    def _custom_is_given(self) -> Self:
        if self.family == "custom" and self.custom is None:
            raise ValueError("family is custom, but no custom family is given")
        return self


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
        self._starts: dict[int, list[tuple[tuple[int, ...], _Finder]]] = {}
        for finder in self._finders:
            for start in finder.family.starts:
                self._starts.setdefault(start[0], []).append((start, finder))
        self._seams = _Seams(self._finders)

    def family(self, prompt_ids: _Ids) -> Family | None:
        """Return the family set, or with `auto` the one that the prompt begins like."""
        finders = self._candidates(checked_ids(prompt_ids[:MAX_START_TOKENS]))
        return finders[0].family if finders else None

    def spans(self, prompt_ids: _Ids) -> tuple[Span, ...]:
        """Return ascending, disjoint spans of the prompt; () when its template is not known.

        With `auto` a prompt that begins like no family may have lost its beginning: one whose
        messages join like those of a family is read as that family's. Not known means: no family,
        no second marker (a first id alone proves nothing), none of the markers that the family
        needs, or more than MAX_MARKERS markers. Raises RecordError ("token_id_range") for ids that
        are none.
        """
        # the door hands in what it checked: a second look at every id would double the cost
        is_checked = isinstance(prompt_ids, np.ndarray) and prompt_ids.dtype == np.uint32
        ids = np.asarray(prompt_ids) if is_checked else checked_ids(prompt_ids)
        for finder in self._candidates(ids):
            positions = finder.messages(ids)
            if positions:
                return _spans(ids, positions, finder.family)
        return ()

    def _candidates(self, ids: NDArray[np.uint32]) -> "list[_Finder]":
        """Return the finders to try in turn, most of the time none or one."""
        if not self._auto:
            return self._finders
        head = tuple(ids[:MAX_START_TOKENS].tolist())
        known = self._starts.get(head[0], ()) if head else ()
        begun = [finder for start, finder in known if head[: len(start)] == start]
        if begun:
            return begun
        finder = self._seams.find(ids)
        return [] if finder is None else [finder]


class _Finder:
    """The markers of one family, grouped into dense id ranges: two comparisons find a group."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._markers = family.markers
        ranges: list[tuple[int, int]] = []
        for marker in sorted(self._markers):
            if ranges and marker - ranges[-1][1] <= MAX_RANGE_GAP:
                ranges[-1] = (ranges[-1][0], marker)
            else:
                ranges.append((marker, marker))
        self._ranges = [(np.uint32(least), np.uint32(most - least)) for least, most in ranges]

    def messages(self, ids: NDArray[np.uint32]) -> list[int]:
        """Return the positions of all markers; none if they do not make a prompt of the family."""
        positions = self._positions(ids)
        if not 1 < len(positions) <= MAX_MARKERS:
            return []
        needs = self.family.needs
        # the first marker is what the family was chosen by: it must not prove itself
        if needs and not needs.intersection(ids[positions[1:]].tolist()):
            return []
        return positions

    def _positions(self, ids: NDArray[np.uint32]) -> list[int]:
        found: list[int] = []
        for least, width in self._ranges:
            # unsigned subtraction wraps, so one comparison tests both ends of the range
            near = (ids - least <= width).nonzero()[0]
            tokens = ids[near].tolist()
            found += [
                at
                for at, token in zip(near.tolist(), tokens, strict=True)
                if token in self._markers
            ]
        return found if len(self._ranges) == 1 else sorted(found)


class _Seams:
    """Where one message ends and the next begins: id sequences that no other family writes."""

    def __init__(self, finders: list[_Finder]) -> None:
        self._finders = {seam: finder for finder in finders for seam in finder.family.seams}
        self._lengths = sorted({len(seam) for seam in self._finders}, reverse=True)
        size = 2 + max((max(seam[:2]) for seam in self._finders), default=0)
        # a bit per seam, every 64th the same; ids beyond the tables fall on their empty last place
        self._tables = np.zeros((2, size), dtype=np.uint64)
        for at, seam in enumerate(self._finders):
            self._tables[[0, 1], seam[:2]] |= np.uint64(1 << at % 64)

    def find(self, ids: NDArray[np.uint32]) -> _Finder | None:
        """Return the finder of the first seam in `ids`."""
        if not self._finders:
            return None
        places = np.minimum(ids, self._tables.shape[1] - 1)
        likely = self._tables[0][places[:-1]] & self._tables[1][places[1:]]
        for at in np.flatnonzero(likely)[:MAX_SEAM_CHECKS].tolist():
            head = ids[at : at + self._lengths[0]].tolist()
            for length in self._lengths:
                finder = self._finders.get(tuple(head[:length]))
                if finder is not None:
                    return finder
        return None


def _spans(ids: NDArray[np.uint32], positions: list[int], family: Family) -> tuple[Span, ...]:
    length = len(ids)
    width = 1 + family.header_tokens + MAX_FILLER_TOKENS
    # of a short prompt all tokens as one list are sooner had than the few behind each marker
    whole = ids.tolist() if length <= MAX_WHOLE_TOKENS else None
    spans: list[Span] = []
    template_start = positions[0]
    for position, following in zip(positions, [*positions[1:], length], strict=True):
        stop = min(following, position + width)
        head = ids[position:stop].tolist() if whole is None else whole[position:stop]
        size, role = _message(head, family)
        content = position + size
        if content == following and following < length:
            continue  # the next marker touches this one: one template span for both
        spans.append(Span(_TEMPLATE, template_start, content))
        if role is not None and content < following:
            spans.append(Span(role, content, following))
        template_start = following
    return tuple(spans)


def _message(head: list[int], family: Family) -> tuple[int, Role | None]:
    """Read the marker at the start of `head`, which ends before the next marker.

    Returns how many tokens are template, and whose the text after them is (None: nobody's).
    """
    marker = head[0]
    if marker in family.headers:
        for end in range(1, min(len(head), family.header_tokens + 1)):
            if head[end] in family.header_ends:
                role = family.role_names.get(head[1], family.roles.get(marker))
                return _after(head, end + 1, family.after_header), role
        # a prompt may end in the middle of the header that asks for the answer
        return (2 if len(head) == 2 and head[1] in family.role_names else 1), None
    if marker in family.roles:
        return _after(head, 1, family.after_role), family.roles[marker]
    return _after(head, 1, family.after_closer), None


def _after(head: list[int], start: int, filler: frozenset[int]) -> int:
    if not filler:
        return start
    end = start
    while end < len(head) and end - start < MAX_FILLER_TOKENS and head[end] in filler:
        end += 1
    return end
