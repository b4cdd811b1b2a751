"""`bleedwatch check`: before a deployment, whether what is to run is known to bleed."""

import typer

from detector.cli import check_config, check_version

app = typer.Typer(no_args_is_help=True, help="Check what is to run, before it runs.")

app.command("config")(check_config.check_config)
app.command("version")(check_version.check_version)
