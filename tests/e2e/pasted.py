"""A folder that looks like a checkout after `make setup`, and a shell that is typed into there."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.content.tree import ROOT
from tests.e2e.program import environment


def checkout(folder: Path) -> Path:
    """Fill a folder with links to the checkout; what commands write stays in the folder."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith("."):
            (folder / entry.name).symlink_to(entry)
    (folder / ".venv").mkdir()
    for entry in Path(sys.prefix).iterdir():
        (folder / ".venv" / entry.name).symlink_to(entry)
    (folder / ".venv" / ".ready").unlink(missing_ok=True)
    (folder / ".venv" / ".ready").touch()
    return folder


def paste(
    lines: str, folder: Path, *, timeout_s: float = 240, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Type lines into a shell; nothing that it started in its session is left.

    Raises TimeoutExpired after `timeout_s` seconds.
    """
    command = ["bash", "-c", lines]
    with subprocess.Popen(
        command, cwd=folder, env=environment(MAKEFLAGS="", **variables), start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as shell:  # fmt: skip
        try:
            out, told = shell.communicate(timeout=timeout_s)
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, shell.returncode, out, told)
