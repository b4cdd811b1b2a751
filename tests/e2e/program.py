"""Runs the program as a user does, in a process of its own, or faster inside this one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from detector.cli.app import app
from detector.cli.exit import exit_code_of

Capture = pytest.CaptureFixture[str]

PROGRAM = (sys.executable, "-c", "from detector.cli.app import main; main()")


def environment(**variables: str) -> dict[str, str]:
    """Return the environment without settings of whoever runs the tests."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("BLEEDWATCH_")}
    return {**inherited, **variables}


def run(
    *arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """Run `bleedwatch` with `arguments`; whatever happens, it must not show a traceback."""
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env=environment(**variables),
        check=False,
        timeout=120,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


def call(capture: Capture, *arguments: str | Path) -> tuple[int, str, str]:
    """Run the program inside this process; return exit code, stdout and stderr.

    A fault of ours, which the program tells in a message of its own, fails the test.
    """
    code = exit_code_of(lambda: app([str(word) for word in arguments]))
    out = capture.readouterr()
    assert "internal fault" not in out.err, out.err
    assert "Traceback" not in out.err, out.err
    return code, out.out, out.err


def replayed(capture: Capture, config: Path, *files: Path) -> dict[str, Any]:
    """Replay files and return the document; the program must not give up."""
    options = ("--config", config, "--fail-on", "never", "-o", "json")
    code, out, err = call(capture, "replay", *files, *options)
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document
