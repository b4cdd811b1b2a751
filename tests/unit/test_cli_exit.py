"""How every way of failing ends."""

from collections.abc import Callable

import pytest

from detector.cli.exit import ERROR, INTERRUPTED, OK, exit_code_of
from detector.config.problems import InvalidSettingsError
from detector.errors import InputError, SettingsError

CANARY = "canary 151644"


def raising(error: BaseException) -> Callable[[], None]:
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SystemExit(3), 3),
        (SystemExit(None), OK),
        (SystemExit("text"), ERROR),
        (KeyboardInterrupt(), INTERRUPTED),
        (InputError("broken"), ERROR),
        (OSError(28, "No space left on device"), ERROR),
        (MemoryError(), ERROR),
        (ValueError("x"), ERROR),
    ],
)
def test_exit_codes(error: BaseException, code: int) -> None:
    assert exit_code_of(raising(error)) == code


def test_success() -> None:
    assert exit_code_of(lambda: None) == OK


def test_every_problem_of_the_settings_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    problems = [
        SettingsError("second", where="f.yaml:12"),
        SettingsError("first", where="f.yaml:2", hint="fix it"),
    ]
    exit_code_of(raising(InvalidSettingsError(problems)))
    assert capsys.readouterr().err.splitlines() == [
        "error: f.yaml:2: first",
        "  next: fix it",
        "error: f.yaml:12: second",
    ]


def test_a_fault_of_ours_shows_the_place_and_no_data(capsys: pytest.CaptureFixture[str]) -> None:
    exit_code_of(raising(ValueError(CANARY)))
    told = capsys.readouterr().err
    assert "internal fault (ValueError)" in told
    assert "test_cli_exit.py:" in told
    assert CANARY not in told


def test_messages_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    exit_code_of(raising(InputError("broken", where="log\x1b[2J\u202e\n::error::.txt")))
    assert capsys.readouterr().err == "error: log\\x1b[2J\\u202e\\n::error::.txt: broken\n"
