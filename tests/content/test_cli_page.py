"""docs/cli.md lists every command and its arguments, and links to the page that has its section."""

import re
from collections.abc import Iterator

from tests.content.app_commands import leaves, usage
from tests.content.tree import ROOT, name, pages

INDEX = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def listed() -> Iterator[tuple[str, str]]:
    """Yield each command of the table with the page that its row links to."""
    (table,) = re.findall(r"^\| for \| commands \|$(.*?)^$", INDEX, re.M | re.S)
    for page, commands in re.findall(r"^\| \[[^]]+\]\(([^)#]+)[^)]*\) \| (.+) \|$", table, re.M):
        for command in re.findall(r"`([^`]+)`", commands):
            yield command, f"docs/{page}"


def sections() -> list[tuple[str, str]]:
    """Return the section of each command with its page."""
    return [
        (command, name(path))
        for path in pages("cli")
        for command in re.findall(r"^## bleedwatch (.*)$", path.read_text(encoding="utf-8"), re.M)
    ]


def test_the_list_holds_every_command_with_its_arguments_once() -> None:
    commands = [command.casefold() for command, _ in listed()]
    assert sorted(commands) == sorted(usage(path, one).casefold() for path, one in leaves())


def test_every_command_has_one_section() -> None:
    assert sorted(command for command, _ in sections()) == sorted(
        " ".join(path) for path, _ in leaves()
    )


def test_each_row_links_to_the_page_of_its_commands() -> None:
    linked = dict(listed())
    page_of = {usage(path, one): " ".join(path) for path, one in leaves()}
    words = {text.casefold(): command for text, command in page_of.items()}
    assert sorted((words[text.casefold()], page) for text, page in linked.items()) == sorted(
        sections()
    )
