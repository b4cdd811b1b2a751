"""`bleedwatch bench`: speed and memory of the detector's core on this machine."""

from detector.cli import options
from detector.cli.output import Format, write_rows
from detector.cli.terminal import progress


def bench(output: options.Output = Format.TABLE) -> None:
    r"""Measure speed and memory on this machine.

    Compares the core with plain alternatives on one CPU core.

    \b
    bleedwatch bench -o json
    """
    from detector import bench as measure

    with progress("measuring") as on_progress:
        rows = measure.run_bench(on_progress=on_progress)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    write_rows(rows, output, columns=columns)
