"""`bleedwatch version`: what is installed here."""

import platform
from importlib.metadata import version as installed
from typing import Annotated

import typer

from detector.cli import options
from detector.cli.output import Format, write_document
from detector.cli.terminal import write


def _shown(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


def program(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_shown, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Hold what stands before a command: `--version`, which people try first."""


def version(output: options.Output = Format.TABLE) -> None:
    """Print the version of bleedwatch and of Python."""
    bleedwatch, python = installed("bleedwatch"), platform.python_version()
    if output is Format.TABLE:
        write(f"bleedwatch {bleedwatch} (Python {python}, {platform.machine()})")
    else:
        document = {"bleedwatch": bleedwatch, "python": python, "machine": platform.machine()}
        write_document(document, output)
