"""`bleedwatch run`: the processes of a running system; each command lives in a file of its own."""

import typer

from detector.cli import run_all, run_api, run_sidecar, run_tap, run_worker

app = typer.Typer(no_args_is_help=True, help="Run the monitor.")

app.command("all")(run_all.run_all)
app.command("api")(run_api.run_api)
app.command("sidecar")(run_sidecar.run_sidecar)
app.command("tap")(run_tap.run_tap)
app.command("worker")(run_worker.run_worker)
