"""`bleedwatch version`: what is installed here."""

import platform
from importlib.metadata import version as installed

from detector.cli import options
from detector.cli.output import Format, write_document
from detector.cli.terminal import write


def version(output: options.Output = Format.TABLE) -> None:
    """Print the version of bleedwatch and of Python."""
    bleedwatch, python = installed("bleedwatch"), platform.python_version()
    if output is Format.TABLE:
        write(f"bleedwatch {bleedwatch} (Python {python}, {platform.machine()})")
    else:
        document = {"bleedwatch": bleedwatch, "python": python, "machine": platform.machine()}
        write_document(document, output)
