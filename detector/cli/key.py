"""`bleedwatch key`: the deployment secret under which tokens are hashed."""

import shlex
from typing import Annotated

import typer

from detector.cli import options
from detector.cli.output import Format, write_document
from detector.cli.terminal import note, printable, write

app = typer.Typer(no_args_is_help=True, help="Make the deployment secret.")


@app.command("new")
def new(
    path: Annotated[str, typer.Argument(metavar="PATH", help="File to make; never overwritten.")],
    output: options.Output = Format.TABLE,
) -> None:
    r"""Write a new random secret to a file.

    Only you can read the file. Prints the key id, which is public.

    \b
    bleedwatch key new secret.key
    """
    from ingest.key_file import new_secret

    key_id = new_secret(path).keys().key_id
    if output is Format.TABLE:
        write(f"{key_id}  {printable(path)}")
        note(f"next: export BLEEDWATCH_KEY_FILE={shlex.quote(path)}")
    else:
        write_document({"key_id": key_id, "file": path}, output)
