"""`bleedwatch config`: what the settings are, what they may be, and whether a file is right."""

import json
from typing import Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.output import Format, write_document, write_rows
from detector.cli.terminal import note, write

app = typer.Typer(no_args_is_help=True, help="Show, describe and check settings.")


@app.command("show")
@with_examples
def show(
    config: options.Config = None,
    assignments: options.Assignments = None,
    key_file: options.KeyFile = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Print all settings and where they come from.

    Secrets are hidden.

    For example:
      # a complete configuration file, each line with its origin
      bleedwatch config show -o yaml
    """
    from detector.config.effective import as_tree, as_yaml, effective
    from detector.config.load import load_settings

    loaded = load_settings(config, assignments=assignments or (), key_file=key_file)
    rows = effective(loaded)
    if output is Format.YAML:
        write(as_yaml(rows))
    elif output is Format.JSON:
        origins = {row.name: row.origin for row in rows}
        write_document({"settings": as_tree(rows), "from": origins}, output)
    else:
        plain = output is Format.TABLE
        records = [
            {"setting": row.name, "value": row.text if plain else row.value, "from": row.origin}
            for row in rows
        ]
        write_rows(records, output, columns=("setting", "value", "from"))


@app.command("schema")
@with_examples
def schema() -> None:
    """Print the JSON Schema of the configuration file.

    For example:
      bleedwatch config schema > bleedwatch.schema.json
    """
    from detector.config.schema import schema as described

    write(json.dumps(described(), indent=2))


@app.command("check")
@with_examples
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="YAML configuration.")],
) -> None:
    """Check a configuration file.

    Lists every problem with its line and exits 2 if there is one.

    For example:
      bleedwatch config check bleedwatch.yaml
    """
    from detector.config.load import load_settings

    load_settings(file, environment={})
    note(f"{file}: all settings are valid")
