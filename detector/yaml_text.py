"""YAML that somebody else wrote: bounded in depth before it is built, one kind of error for all.

PyYAML takes time with the square of the depth, raises RecursionError behind it, and ValueError,
KeyError or AttributeError for numbers, dates and tags that it cannot make.
"""

from collections.abc import Iterator
from typing import Final

import yaml

MAX_DEPTH: Final = 100
"""The deepest file of ours has some ten levels."""

_OPENING: Final = (
    yaml.BlockMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.FlowSequenceStartToken,
)
_CLOSING: Final = (yaml.BlockEndToken, yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)


def tokens(text: str, loader: type[yaml.SafeLoader] = yaml.SafeLoader) -> Iterator[yaml.Token]:
    """Yield the tokens of a text; raises yaml.MarkedYAMLError where it is nested too deeply."""
    depth = 0
    for token in yaml.scan(text, Loader=loader):
        depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
        if depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(
                problem=f"nested deeper than {MAX_DEPTH} levels", problem_mark=token.start_mark
            )
        yield token


def plain_values(text: str) -> object:
    """Return what `yaml.safe_load` does; raises yaml.YAMLError for whatever is wrong."""
    for _ in tokens(text):
        pass
    try:
        return yaml.safe_load(text)
    except (ValueError, KeyError, AttributeError, TypeError, OverflowError):
        raise yaml.YAMLError("a number, date or tag is none that can be read") from None
