"""What settings exist: every path with its type, default and description, read off the models."""

import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic.fields import FieldInfo

Path = tuple[str | int, ...]
"""Where a setting stands: names of sections and positions in lists, from the root."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `types` are the plain types it accepts, without None and annotations."""

    path: Path
    types: tuple[Any, ...]
    default: object
    description: str

    @property
    def secret(self) -> bool:
        """Whether its value must never be shown."""
        return any(kind in (SecretStr, SecretBytes) for kind in self.types)


def dotted(path: Path) -> str:
    """Return `("sources", 0, "format")` as people write it: `sources[0].format`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def every_setting(model: type[BaseModel], prefix: Path = ()) -> Iterator[Setting]:
    """Yield the settings below `model` as declared; a list, a map or an optional group is one."""
    for name, info in model.model_fields.items():
        path = (*prefix, name)
        if _is_model(info.annotation):
            yield from every_setting(info.annotation, path)
        else:
            kinds = _plain_types(info.annotation)
            yield Setting(path, kinds, _default(info), info.description or "")


def types_at(model: type[BaseModel], path: Path) -> tuple[Any, ...]:
    """Plain types that a value at `path` may have; empty when there is no such setting."""
    kinds: tuple[Any, ...] = (model,)
    for step in path:
        kinds = tuple(inner for kind in kinds for inner in _step_into(kind, step))
    return kinds


def names_at(model: type[BaseModel], path: Path) -> list[str]:
    """Names that the section at `path` accepts."""
    sections = [kind for kind in types_at(model, path) if _is_model(kind)]
    return [name for section in sections for name in section.model_fields]


def may_be_unset(model: type[BaseModel], path: Path) -> bool:
    """Whether the setting at `path` takes null for not having it."""
    above = types_at(model, path[:-1])
    fields = [kind.model_fields.get(str(path[-1])) for kind in above if _is_model(kind)]
    return any(info is not None and _takes_null(info.annotation) for info in fields)


def _step_into(kind: Any, step: str | int) -> tuple[Any, ...]:
    if _is_model(kind):
        info = kind.model_fields.get(str(step))
        return _plain_types(info.annotation) if info else ()
    arguments = get_args(kind)
    if isinstance(step, int) and get_origin(kind) in (list, tuple, set, frozenset, Sequence):
        return _plain_types(arguments[0]) if arguments else ()
    if isinstance(step, str) and get_origin(kind) is not Literal and len(arguments) == 2:
        return _plain_types(arguments[1])
    return ()


def _plain_types(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Annotated:
        return _plain_types(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        members = [kind for kind in get_args(annotation) if kind is not type(None)]
        return tuple(plain for member in members for plain in _plain_types(member))
    return (annotation,)


def _takes_null(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _takes_null(get_args(annotation)[0])
    return type(None) in get_args(annotation)


def _is_model(kind: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _default(info: FieldInfo) -> object:
    return info.get_default(call_default_factory=True, validated_data={})
