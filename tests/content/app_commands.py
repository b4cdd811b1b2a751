"""The commands of the program, as its own help writes them."""

import re
from collections.abc import Iterator
from typing import Any

import typer

from detector.cli.app import app


def leaves(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command that does something, with its path, such as ("run", "worker")."""
    group = group or typer.main.get_command(app)
    for word, below in group.commands.items():
        if getattr(below, "commands", None):
            yield from leaves(below, (*path, word))
        else:
            yield (*path, word), below


def usage(path: tuple[str, ...], command: Any) -> str:
    """Return a command with its arguments, such as `trace REQUEST_ID [FILES...]`."""
    context = command.make_context(path[-1], [], resilient_parsing=True)
    pieces = [piece for piece in command.collect_usage_pieces(context) if "OPTIONS" not in piece]
    return " ".join((*path, *map(_argument, pieces)))


def _argument(piece: str) -> str:
    """Write an argument as documents do; typer's own marks differ between its versions."""
    word = "".join(re.findall(r"\w+", piece)) + ("..." if "..." in piece else "")
    return f"[{word}]" if piece.startswith("[") else word
