"""docs/cli.md begins with every command and its arguments, and has a section for each."""

import re

from tests.content.app_commands import leaves, usage
from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def test_the_list_at_the_top_holds_every_command_with_its_arguments_once() -> None:
    (table,) = re.findall(r"^\| for \| commands \|$(.*?)^$", PAGE, re.M | re.S)
    listed = [one.casefold() for one in re.findall(r"`([^`]+)`", table)]
    assert sorted(listed) == sorted(usage(path, one).casefold() for path, one in leaves())


def test_there_is_no_section_of_a_command_that_does_not_exist() -> None:
    sections = set(re.findall(r"^## bleedwatch (.*)$", PAGE, re.M))
    assert sections == {" ".join(path) for path, _ in leaves()}
