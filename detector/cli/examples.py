"""Examples in the help of a command, kept line by line."""

import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

MARK = "For example:"
"""Begins the last paragraph of a docstring, which holds one example on every line."""

_AS_IT_STANDS = "\b"
"""A line that forbids typer to join the lines of the paragraph it begins."""

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def with_examples(command: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Let `--help` show the examples of `command` as its docstring writes them."""
    text = inspect.cleandoc(command.__doc__ or "")
    command.__doc__ = text.replace(MARK, f"{_AS_IT_STANDS}\n{MARK}")
    return command
