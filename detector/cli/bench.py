"""`bleedwatch bench`: speed and memory of the detector's core on this machine."""

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.output import Format, write_rows
from detector.cli.terminal import progress


@with_examples
def bench(output: options.Output = Format.TABLE) -> None:
    """Measure speed and memory on this machine.

    Compares the core with plain alternatives on one CPU core.

    For example:
      bleedwatch bench -o json
    """
    from detector.errors import UsageError

    try:
        from detector import bench as measure
    except ModuleNotFoundError as error:
        hint = "install it with: pip install 'bleedwatch[worker]' datasketch"
        raise UsageError(f"the benchmark needs {error.name}", hint=hint) from None

    with progress("measuring") as on_progress:
        rows = measure.run_bench(on_progress=on_progress)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    write_rows(rows, output, columns=columns)
