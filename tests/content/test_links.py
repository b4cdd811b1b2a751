"""Every link of a document leads to a file of the repository, and to a heading that it has."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.content.tree import ROOT, name, text_files

DOCUMENTS = [path for path in text_files() if path.suffix == ".md"]

FENCED = re.compile(r"^( *)(```|~~~).*?^\1\2$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)|^\[[^]]+\]: (\S+)$", re.MULTILINE)
CODE = re.compile(r"`[^`\n]+`")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """Return the names under which the headings of a document can be linked to."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in HEADING.findall(FENCED.sub("", text)):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return found


def broken(path: Path, root: Path = ROOT) -> list[str]:
    """Return the links of a document that lead nowhere; addresses of other places are not tried."""
    text = CODE.sub("", FENCED.sub("", path.read_text(encoding="utf-8")))
    targets = [first or second for first, second in LINK.findall(text)]
    return [one for one in targets if "://" not in one and not _leads(path, one, root)]


def _leads(path: Path, target: str, root: Path) -> bool:
    file, _, anchor = target.partition("#")
    there = (path.parent / file).resolve() if file else path
    if not there.exists() or not there.is_relative_to(root):
        return False
    return not anchor or anchor in anchors(there.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_every_link_leads_somewhere(path: Path) -> None:
    assert broken(path) == []


def test_broken_links_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    text = "# A `b`: c\n[x](#a-b-c) [y](#a) [z](no/page) [o](../)\n```\n[in](code)\n```\n"
    page.write_text(text, encoding="utf-8")
    assert broken(page, tmp_path) == ["#a", "no/page", "../"]


def test_headings_of_one_name_are_told_apart() -> None:
    assert anchors("# Same\n## Same\n```\n# no heading\n```\n") == {"same", "same-1"}


def test_many_links_are_seen() -> None:
    links = sum(len(LINK.findall(path.read_text(encoding="utf-8"))) for path in DOCUMENTS)
    assert links > 300
    assert {name(path) for path in DOCUMENTS} >= {
        "README.md", "README.ja.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/cli/logs.md"
    }  # fmt: skip
