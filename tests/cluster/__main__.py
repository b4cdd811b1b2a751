"""`python -m tests.cluster [soak]`: the demo of the whole cluster, or its soak; 0 if all is well.

On a failure the logs of all processes are kept, and the last line says where.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from standardwebhooks.webhooks import WebhookVerificationError

from detector.errors import BleedwatchError
from tests.cluster import demo, soak
from tests.cluster.process import NotStartedError
from tests.cluster.seen import MissingError
from tests.cluster.steps import Steps
from tests.content.tree import ROOT

PICTURES: Final = ROOT / ".artifacts" / "cluster"

FAILURES: Final = (
    MissingError,
    NotStartedError,
    BleedwatchError,
    WebhookVerificationError,
    AssertionError,
    OSError,
    subprocess.SubprocessError,
)


def main() -> int:
    """Run what is asked for and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster")
    parser.add_argument("what", nargs="?", choices=["demo", "soak"], default="demo")
    parser.add_argument("--minutes", type=float, default=30.0, help="of a soak")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of a soak")
    wanted = parser.parse_args()
    steps = Steps()
    folder = Path(tempfile.mkdtemp(prefix="bleedwatch-cluster-"))
    try:
        wrong = _run(wanted, folder, steps)
    except FAILURES as error:
        wrong = [f"missing: {error}"]
    print(f"\n{steps.table()}", flush=True)
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        print(f"the logs are in {folder}", file=sys.stderr)
        load, cores = os.getloadavg()[0], os.cpu_count()
        print(f"load {load:.0f} on {cores} cores: a busy machine tells later", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


def _run(wanted: argparse.Namespace, folder: Path, steps: Steps) -> list[str]:
    if wanted.what == "soak":
        print(f"seed {wanted.seed}", flush=True)
        return soak.run(folder, steps, seconds=60 * wanted.minutes, seed=wanted.seed)
    demo.run(folder, steps, pictures=PICTURES)
    return []


if __name__ == "__main__":
    sys.exit(main())
