"""YAML with the line of every value: scalars stay the text that they are written as."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import yaml

from detector.errors import InputError

MAX_BYTES: Final = 8 * 1024 * 1024
"""What `helm template` makes of a chart with hundreds of objects has less than one."""

MAX_DEPTH: Final = 100
"""A pod in a custom resource lies some 12 levels deep."""

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser in C, where there is one, is ten times as fast."""

_NULLS: Final = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, eq=False)
class Placed:
    """A value of a document and where it stands, as FILE:LINE.

    One of `items`, `members` and `text` is set; none for null. `is_block`: its text begins in the
    line below and keeps its lines.
    """

    file: str
    line: int
    text: str | None = None
    items: tuple["Placed", ...] | None = None
    members: dict[str, "Placed"] | None = None
    is_block: bool = False

    @property
    def where(self) -> str:
        """FILE:LINE."""
        return f"{self.file}:{self.line}"

    def get(self, *path: str) -> "Placed | None":
        """Return what lies at a path of names, None if there is nothing or null."""
        at: Placed | None = self
        for name in path:
            at = (at.members or {}).get(name) if at is not None else None
        is_null = at is not None and at.text is None and at.items is None and at.members is None
        return None if is_null else at

    def word(self, *path: str) -> str:
        """Return the text at a path, empty if there is none."""
        at = self.get(*path)
        return "" if at is None or at.text is None else at.text

    def each(self, *path: str) -> tuple["Placed", ...]:
        """Return the items of the list at a path, none if there is no list."""
        at = self.get(*path)
        return () if at is None or at.items is None else at.items


def documents(text: str, file: str) -> list[Placed]:
    """Return the documents of a YAML text; empty ones are left out.

    Raises InputError for what is none, with the line.
    """
    if len(text) > MAX_BYTES:
        raise InputError(
            f"more than {MAX_BYTES:,} characters", where=file, hint="give the engines' objects only"
        )
    try:
        nodes = [node for node in yaml.compose_all(text, _LOADER) if node is not None]
        made: dict[int, Placed] = {}
        return [_placed(node, file, made, 0) for node in nodes]
    except yaml.YAMLError as error:
        raise _broken(error, text, file) from None
    except RecursionError:
        raise _too_deep(file) from None


class Found(NamedTuple):
    """A mapping below a value: the names that lead to it, and the mappings around it."""

    path: tuple[str, ...]
    at: Placed
    around: tuple[Placed, ...]
    """The outermost first, without itself."""


def mappings(root: Placed) -> Iterator[Found]:
    """Yield every mapping of a value, itself included, in the order of the text; each once."""
    seen: set[int] = set()
    pending = [Found((), root, ())]
    while pending:
        found = pending.pop()
        path, at, around = found
        if id(at) in seen:
            continue
        seen.add(id(at))
        if at.members is not None:
            yield found
            inside = (*around, at)
            below = [Found((*path, name), value, inside) for name, value in at.members.items()]
        else:
            below = [Found(path, item, around) for item in at.items or ()]
        pending += reversed(below)


def _placed(node: yaml.Node, file: str, made: dict[int, Placed], depth: int) -> Placed:
    known = made.get(id(node))
    if known is not None:
        return known
    if depth > MAX_DEPTH:
        raise _too_deep(file)
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        members = {
            str(key.value): _placed(value, file, made, depth + 1) for key, value in node.value
        }
        merged = members.pop("<<", None)
        sources = () if merged is None else merged.items or (merged,)
        for source in sources:
            members = {**(source.members or {}), **members}
        one = Placed(file, line, members=members)
    elif isinstance(node, yaml.SequenceNode):
        items = tuple(_placed(item, file, made, depth + 1) for item in node.value)
        one = Placed(file, line, items=items)
    else:
        style = node.style if isinstance(node, yaml.ScalarNode) else None
        text = None if style is None and node.value in _NULLS else str(node.value)
        one = Placed(file, line, text=text, is_block=style in ("|", ">"))
    made[id(node)] = one
    return one


def template(where: str) -> InputError:
    """Return what to say of a template."""
    return InputError(
        "a template, not a manifest: it still holds {{ }}",
        where=where,
        hint="render it: helm template CHART | bleedwatch check config -",
    )


def _too_deep(file: str) -> InputError:
    return InputError(
        f"more than {MAX_DEPTH} levels deep, or a value that holds itself",
        where=file,
        hint="give the manifest without anchors, as `helm template` writes it",
    )


def _broken(error: yaml.YAMLError, text: str, file: str) -> InputError:
    mark = getattr(error, "problem_mark", None)
    where = file if mark is None else f"{file}:{mark.line + 1}"
    if "{{" in text:
        return template(where)
    if "<<<<<<<" in text:
        return InputError(
            "not YAML: the marks of a merge conflict are in it",
            where=where,
            hint="resolve the conflict, then check the result",
        )
    return InputError("not YAML", where=where, hint="mend the syntax in or just before this line")
