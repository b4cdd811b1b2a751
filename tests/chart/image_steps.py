"""Takes the steps of the Dockerfile without Docker and measures what they make.

`python -m tests.chart.image_steps`: the same commands, with the folders of the images below a
temporary one. It ends with an error if an image does not answer, or the sidecar's is not slim.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.chart.dockerfile import context, stages

HEAVY: Final = ("numba", "llvmlite", "faust", "aiokafka", "sqlalchemy", "fastapi", "torch")

_LOADED: Final = (
    "import atexit, json, sys\n"
    "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
    "sys.argv = ['bleedwatch', 'run', 'sidecar', '--help']\n"
    "from detector.cli.app import main\n"
    "main()\n"
)


def take(stage: str, places: dict[str, Path]) -> None:
    """Run the commands of a stage, with other places for its folders."""
    variables = {**stages()["build"].variables(), **stages()[stage].variables()}
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    for command in stages()[stage].all("RUN"):
        here = command
        for place, folder in places.items():
            here = here.replace(place, str(folder))
        print(f"$ {command}", flush=True)
        subprocess.run(
            ["/bin/sh", "-ec", f"umask 022; {here}"],
            env={**os.environ, **variables, "PATH": path, "PIP_QUIET": "1"},
            cwd=places["/src"],
            check=True,
        )


def size_mb(folder: Path) -> float:
    """Return what a folder takes, in millions of bytes."""
    return sum(one.lstat().st_size for one in folder.rglob("*") if not one.is_dir()) / 1e6


def look_at(name: str, python: Path) -> None:
    """Ask an installation for its version, and see that the sidecar loads nothing heavy."""
    told = _said([python.with_name("bleedwatch"), "version"]).stdout.strip()
    loaded = _said([python, "-c", _LOADED]).stderr.splitlines()[-1]
    heavy = set(HEAVY) & set(json.loads(loaded))
    print(f"{name}: {told}, {size_mb(python.parents[1]):.0f} MB")
    if heavy:
        raise SystemExit(f"error: `run sidecar --help` loads {', '.join(sorted(heavy))}")


def _said(command: Sequence[str | Path]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")


def main() -> None:
    """Make both installations below a temporary folder and look at them."""
    with tempfile.TemporaryDirectory(prefix="bleedwatch-image-") as name:
        folder = Path(name)
        for path in context():
            if path.is_dir():
                left_out = shutil.ignore_patterns("__pycache__")
                shutil.copytree(path, folder / "src" / path.name, ignore=left_out)
            else:
                (folder / "src").mkdir(exist_ok=True)
                shutil.copy(path, folder / "src")
        places = {"/src": folder / "src", "/wheels": folder / "wheels", "/opt/build": folder / "b"}
        take("build", places)
        for image in ("sidecar", "full"):
            places["/opt/bleedwatch"] = folder / image
            take(f"install-{image}", places)
            look_at(image, folder / image / "bin" / "python")
        slim = folder / "sidecar" / "lib"
        unwanted = [name for name in HEAVY if list(slim.glob(f"*/site-packages/{name}"))]
        if unwanted:
            raise SystemExit(f"error: the sidecar's image holds {', '.join(unwanted)}")


if __name__ == "__main__":
    main()
