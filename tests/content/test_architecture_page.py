"""ARCHITECTURE.md mirrors the folders: what it names exists, and every package is named."""

import re
from pathlib import Path
from string import ascii_lowercase

from tests.content.tree import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
DECISIONS = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
PARTS = ("detector", "ingest", "exporters", "dashboards")
FILE = rf"`((?:{'|'.join((*PARTS, 'helm', 'tests'))})/[\w./-]+)`"
NAMED = sorted(set(re.findall(FILE, PAGE + DECISIONS)))


def packages() -> list[Path]:
    found = [file.parent for part in PARTS for file in (ROOT / part).rglob("__init__.py")]
    return sorted(one.relative_to(ROOT) for one in found)


def test_what_the_page_names_exists() -> None:
    assert len(NAMED) > 100
    assert [name for name in NAMED if not (ROOT / name).exists()] == []


def test_every_package_is_on_the_page() -> None:
    assert len(packages()) > 20
    assert [str(one) for one in packages() if f"`{one}" not in PAGE] == []


def test_decisions_have_letters_in_order() -> None:
    """Texts refer to them by letter: none may be lost or used twice."""
    letters = [one * times for times in (1, 2) for one in ascii_lowercase]
    found = re.findall(r"^\*\*(\w+)\. ", DECISIONS, re.M)
    assert found == letters[: len(found)]
    assert len(found) >= 29
