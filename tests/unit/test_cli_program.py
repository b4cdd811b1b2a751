"""The program as a process: start-up, exit codes, streams and pipes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from detector.cli.app import app

PROGRAM = [sys.executable, "-c", "from detector.cli.app import main; main()"]
HEAVY = ("numba", "numpy", "msgspec", "yaml", "rich", "cryptography")


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "BLEEDWATCH_CONFIG": "", **variables}
    return subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, env=environment, check=False
    )


@pytest.mark.parametrize(
    "arguments", [["version"], ["--version"], ["--help"], ["replay", "--help"]]
)
def test_start_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from detector.cli.app import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"


def test_version_in_every_form() -> None:
    assert run("--version").stdout == run("version").stdout
    assert run("version").stdout.startswith("bleedwatch ")
    assert "bleedwatch" in json.loads(run("version", "-o", "json").stdout)
    assert run("version", "-o", "jsonl").stdout.count("\n") == 1
    assert run("version", "-o", "yaml").stdout.startswith("bleedwatch:")


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["version", "--nonsense"], ["explain"], ["version", "-o", "x"]]
)
def test_wrong_usage_exits_2_and_leaves_stdout_empty(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_an_error_says_what_where_and_what_next(tmp_path: Path) -> None:
    done = run("explain", "3f9a1c2b", "--from", str(tmp_path / "absent.jsonl"))
    assert done.returncode == 2
    first, second = done.stderr.splitlines()
    assert (
        first == f"error: {tmp_path}/absent.jsonl: cannot read the findings: no such file or "
        "directory"
    )
    assert second.startswith("  next: ")


def test_a_closed_pipe_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as stdout:
        done = subprocess.run(
            [*PROGRAM, "config", "schema"], stdout=stdout, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_full_disk_is_an_error_without_traceback() -> None:
    with Path("/dev/full").open("wb") as stdout:
        done = subprocess.run(
            [*PROGRAM, "config", "schema"], stdout=stdout, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: no space left on device")
    assert b"Traceback" not in done.stderr


def test_streams_that_are_closed(tmp_path: Path) -> None:
    """Messages must not end up on stdout, and a missing stream is no fault of ours."""
    shell = ["sh", "-c", '"$@" 2>&-', "sh", *PROGRAM]
    done = subprocess.run(
        [*shell, "key", "new", str(tmp_path / "key")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    for redirect, arguments in (
        (">&-", ["version"]),
        ("<&-", ["explain", "3f9a1c2b", "--from", "-"]),
        ("<&-", ["replay", "-"]),
    ):
        shell = ["sh", "-c", f'"$@" {redirect}', "sh", *PROGRAM]
        done = subprocess.run([*shell, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "is closed" in done.stderr


def test_a_full_disk_below_stderr_changes_nothing() -> None:
    command = [*PROGRAM, "explain", "x", "--from", "-"]
    with Path("/dev/full").open("wb") as stderr:
        done = subprocess.run(command, stderr=stderr, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_temporary_files(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [*PROGRAM, "demo"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("bleedwatch-demo-*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(timeout=30) == 128 + number
    assert list(tmp_path.iterdir()) == []


def test_interrupt_exits_130(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [*PROGRAM, "explain", "3f9a1c2b", "--from", str(fifo)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with fifo.open("wb"):
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"Traceback" not in stderr


def test_key_new_prints_the_key_id_but_never_the_secret(tmp_path: Path) -> None:
    file = tmp_path / "secret.key"
    done = run("key", "new", str(file), "-o", "json")
    assert done.returncode == 0
    assert file.stat().st_mode & 0o777 == 0o600
    shown = json.loads(done.stdout)
    assert set(shown) == {"key_id", "file"}
    assert file.read_text().strip() not in done.stdout + done.stderr
    assert run("key", "new", str(file)).returncode == 2


def test_key_new_names_a_variable_that_holds_in_every_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    app(["key", "new", "k 1.key"], standalone_mode=False)
    told = capsys.readouterr().err
    assert told == f"next: export BLEEDWATCH_KEY_FILE='{tmp_path}/k 1.key'\n"


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_settings_as_shown_pass_the_check(tmp_path: Path, form: str) -> None:
    shown = run("config", "show", "-o", form).stdout
    file = tmp_path / "shown.yaml"
    file.write_text(shown if form == "yaml" else json.dumps(json.loads(shown)["settings"]))
    done = run("config", "check", str(file))
    assert (done.returncode, done.stderr) == (0, f"{file}: all settings are valid\n")


def test_ascii_output_never_fails_on_names_from_elsewhere(tmp_path: Path) -> None:
    config = tmp_path / "é.yaml"
    config.write_text("tenancy:\n  rules:\n    - {kind: static, tenant: 東京}\n", encoding="utf-8")
    done = run("config", "show", "--config", str(config), PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "\\u6771" in done.stdout
