"""Whether a tap grows: resident memory through minutes of streams at a moderate rate.

`make tap-growth`. The receiver is away, so everything that is kept goes to a spool on disk.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.tap.figures import LOAD_CORE, TAP_CORE, fast_engine, loaded, resident_bytes
from tests.tap.process import tap_process

STREAMS: Final = 4
"""At once, each as fast as one client of a quick engine: 28 streams a second, 64 events each."""

LOOK_S: Final = 15.0
"""Between two looks at the memory."""

SETTLES: Final = 4
"""Looks that do not count: buffers and pools fill as the first streams pass."""

MOST_MIB: Final = 4.0
"""More than this between the lowest look that counts and the last is growth."""


def grown(looks: list[float]) -> float:
    """Return by how much the last look is above the lowest one that counts."""
    counted = looks[SETTLES:] or looks[-1:]
    return looks[-1] - min(counted)


def main() -> int:
    """Measure and print; return 1 if memory grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long streams go on")
    seconds = 60 * parser.parse_args().minutes
    os.sched_setaffinity(0, {int(LOAD_CORE)})
    streams, looks = 0, list[float]()
    with (
        tempfile.TemporaryDirectory() as folder,
        fast_engine() as direct,
        tap_process(Path(folder), direct, cores=TAP_CORE) as tap,
    ):
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            streams += len(loaded(tap.url, STREAMS, stream=True, seconds=LOOK_S).whole_s)
            looks.append(resident_bytes(tap) / 2**20)
            print(f"{looks[-1]:7.1f} MiB after {streams:,} streams", flush=True)
    print(
        f"{len(looks) * LOOK_S / 60:.1f} minutes, {streams:,} streams: from {looks[0]:.1f} to "
        f"{looks[-1]:.1f} MiB, {grown(looks):+.1f} MiB since it had settled"
    )
    return 1 if grown(looks) > MOST_MIB else 0


if __name__ == "__main__":
    sys.exit(main())
