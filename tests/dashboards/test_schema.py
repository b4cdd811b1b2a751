"""Boards are what Grafana's foundation SDK knows: every field, its type, and every word of a list.

Grafana itself does not run here; the types are those it publishes for one version.
"""

import enum
import json
import types
import typing
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.build import BOARDS
from tests.dashboards.kit import board

GRAFANA = "11.6.0"
"""The newest one whose boards have the form of panels in a grid."""

register_default_plugins()


def wrong(value: Any, hint: Any, path: str = "board") -> list[str]:
    """Return where a value is not what its annotation says, as paths."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        return min((wrong(value, one, path) for one in inner), key=len)
    if origin is typing.Literal:
        return _wrong_word(value, inner, path)
    if origin in {list, dict}:
        if not isinstance(value, origin):
            return [f"{path}: {type(value).__name__} in place of {hint}"]
        each = value.items() if origin is dict else enumerate(value)
        return [bad for key, one in each for bad in wrong(one, inner[-1], f"{path}.{key}")]
    # Options of panels are annotated as anything: the SDK has read them by the panel's type.
    return _wrong_object(value, type(value) if hint in {Any, object} else hint, path)


def _wrong_word(value: Any, words: Iterable[Any], path: str) -> list[str]:
    return [] if value in words else [f"{path}: {value!r} is none of {words}"]


def _wrong_object(value: Any, hint: type, path: str) -> list[str]:
    if issubclass(hint, enum.Enum):
        return _wrong_word(value, [one.value for one in hint], path)
    if isinstance(value, dict) and hasattr(hint, "from_json"):
        value = hint.from_json(value)
    is_right = isinstance(value, (int, float) if hint is float else hint)
    if not is_right or (isinstance(value, bool) and hint is not bool):
        return [f"{path}: {type(value).__name__} in place of {hint}"]
    if not hasattr(value, "from_json"):
        return []
    hints = typing.get_type_hints(type(value))
    return [
        bad
        for name, one in vars(value).items()
        for bad in wrong(one, hints.get(name, Any), f"{path}.{name}")
    ]


def lost(ours: Any, theirs: Any, path: str = "board") -> list[str]:
    """Return which of our fields the SDK does not know: they are gone when it writes the board."""
    if isinstance(ours, dict):
        return [
            bad
            for key, value in ours.items()
            for bad in (
                lost(value, theirs[key], f"{path}.{key}")
                if isinstance(theirs, dict) and key in theirs
                else ([] if value is None else [f"{path}.{key}"])
            )
        ]
    if isinstance(ours, list):
        pairs = zip(ours, theirs, strict=True)
        return [bad for at, pair in enumerate(pairs) for bad in lost(*pair, f"{path}[{at}]")]
    return [] if ours == theirs else [f"{path}: {ours!r} became {theirs!r}"]


def faults(document: dict[str, Any]) -> list[str]:
    """Return what is wrong with a board."""
    read = Dashboard.from_json(document)
    written = json.loads(json.dumps(read, cls=JSONEncoder))
    return [*wrong(read, Dashboard), *lost(document, written)]


def test_the_version_is_the_one_that_is_named() -> None:
    assert version("grafana-foundation-sdk").partition("!")[2] == GRAFANA


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_is_valid(name: str) -> None:
    assert faults(board(name)) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"titel": "x"}, "board.titel"),
        ({"editable": "yes"}, "board.editable"),
        ({"tags": "bleedwatch"}, "board.tags"),
        ({"refresh": 30}, "board.refresh"),
    ],
)
def test_what_is_wrong_is_told(change: dict[str, Any], told: str) -> None:
    assert any(one.startswith(told) for one in faults(board("overview") | change))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", 7),
        ("gridPos", {"h": "4"}),
        ("options", {"colourMode": "none"}),
        ("options", {"colorMode": 7}),
        ("links", "no"),
    ],
)
def test_what_is_wrong_in_a_panel_is_told(field: str, value: Any) -> None:
    document = board("overview")
    document["panels"][1][field] = value
    assert faults(document)
