"""Every command, flag and setting is documented, with the defaults that the code has."""

import json
import re
from collections.abc import Iterator

import pytest
import typer

from detector.cli.app import app
from detector.config.catalog import Setting, dotted, every_setting
from detector.config.root import Settings
from tests.content.tree import name, pages

CLI = "\n".join(path.read_text(encoding="utf-8") for path in pages("cli"))
CONFIGURATION = {name(path): path.read_text(encoding="utf-8") for path in pages("configuration")}
INDEX = "docs/configuration.md"


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield every command with its flags and arguments as `--help` writes them."""
    pending = [("bleedwatch", typer.main.get_command(app))]
    while pending:
        path, command = pending.pop()
        inner = getattr(command, "commands", None)
        if inner:
            pending += [(f"{path} {word}", below) for word, below in inner.items()]
            continue
        words = [
            word
            for param in command.params
            for word in (*param.opts, *param.secondary_opts)
            if word.startswith("-")
        ]
        yield path, words


def row(setting: Setting) -> str:
    """Return the row of a setting."""
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
    assert section, f"docs/cli has no section `## {command}`"
    told = set(re.findall(r"`(--?[a-z][a-z-]*)", section[1]))
    missing = [flag for flag in flags if flag not in told]
    assert not missing


def test_no_flag_is_documented_that_does_not_exist() -> None:
    known = {flag for _, flags in commands() for flag in flags} | {"--help", "-h"}
    assert set(re.findall(r"`(--?[a-z][a-z-]*)", CLI)) <= known


@pytest.mark.parametrize("setting", list(every_setting(Settings)), ids=lambda s: dotted(s.path))
def test_every_setting_is_documented_with_its_default(setting: Setting) -> None:
    holding = [page for page, text in CONFIGURATION.items() if row(setting) in text.splitlines()]
    assert holding == [page_of(str(setting.path[0]))]


def page_of(first: str) -> str:
    """Return the page that the index names for the first part of a name, else the index."""
    listed = re.findall(r"^\| \[[^]]+\]\((.+)\) \| (.+) \|$", CONFIGURATION[INDEX], re.M)
    named = [f"docs/{page}" for page, firsts in listed if f"`{first}`" in firsts.split(", ")]
    assert len(named) <= 1
    return named[0] if named else INDEX


def test_no_setting_is_documented_that_does_not_exist() -> None:
    known = {dotted(setting.path) for setting in every_setting(Settings)}
    text = "\n".join(CONFIGURATION.values())
    assert set(re.findall(r"^\| `([a-z_.]+)` \| (?:`|unset)", text, re.M)) <= known
