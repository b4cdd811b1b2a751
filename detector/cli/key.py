"""`bleedwatch key`: the deployment secret under which tokens are hashed."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.output import Format, write_document
from detector.cli.terminal import note, printable, write

app = typer.Typer(no_args_is_help=True, help="Make the deployment secret.")


@app.command("new")
@with_examples
def new(
    path: Annotated[str, typer.Argument(metavar="PATH", help="File to make; never overwritten.")],
    output: options.Output = Format.TABLE,
) -> None:
    """Write a new random secret to a file.

    Only you can read the file. Prints the key id, which is public.

    For example:
      bleedwatch key new secret.key
    """
    from ingest.key_file import new_secret

    key_id = new_secret(path).keys().key_id
    if output is Format.TABLE:
        write(f"{key_id}  {printable(path)}")
        note(f"next: export BLEEDWATCH_KEY_FILE={shlex.quote(str(Path(path).absolute()))}")
    else:
        write_document({"key_id": key_id, "file": path}, output)
