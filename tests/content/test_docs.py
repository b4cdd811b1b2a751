"""Every command, flag and setting is documented, with the defaults that the code has."""

import json
import re
from collections.abc import Iterator

import pytest
import typer

from detector.cli.app import app
from detector.config.catalog import Setting, dotted, every_setting
from detector.config.root import Settings
from tests.content.tree import ROOT

CLI = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield every command with its flags and arguments as `--help` writes them."""
    pending = [("bleedwatch", typer.main.get_command(app))]
    while pending:
        path, command = pending.pop()
        inner = getattr(command, "commands", None)
        if inner:
            pending += [(f"{path} {word}", below) for word, below in inner.items()]
            continue
        words = [opt for param in command.params for opt in param.opts if opt.startswith("-")]
        yield path, words


def row(setting: Setting) -> str:
    """Return the row of a setting in docs/configuration.md."""
    default = setting.default
    shown = "unset" if default is None else f"`{json.dumps(_plain(default))}`"
    return f"| `{dotted(setting.path)}` | {shown} | {_described(setting)} |"


def _described(setting: Setting) -> str:
    return setting.description.replace("|", r"\|") or "Path of this field in the log's object."


def _plain(value: object) -> object:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", exclude_defaults=False, exclude_none=True) if dump else value


@pytest.mark.parametrize(("command", "flags"), list(commands()), ids=lambda value: str(value)[:40])
def test_every_flag_is_documented(command: str, flags: list[str]) -> None:
    section = re.search(rf"^## {re.escape(command)}$(.*?)(?=^## |\Z)", CLI, re.M | re.S)
    assert section, f"docs/cli.md has no section `## {command}`"
    missing = [flag for flag in flags if f"`{flag}" not in section[1]]
    assert not missing


def test_no_flag_is_documented_that_does_not_exist() -> None:
    known = {flag for _, flags in commands() for flag in flags} | {"--help", "-h"}
    assert set(re.findall(r"`(--?[a-z][a-z-]*)", CLI)) <= known


@pytest.mark.parametrize("setting", list(every_setting(Settings)), ids=lambda s: dotted(s.path))
def test_every_setting_is_documented_with_its_default(setting: Setting) -> None:
    assert row(setting) in CONFIGURATION.splitlines()


def test_no_setting_is_documented_that_does_not_exist() -> None:
    known = {dotted(setting.path) for setting in every_setting(Settings)}
    assert set(re.findall(r"^\| `([a-z_.]+)` \| (?:`|unset)", CONFIGURATION, re.M)) <= known
