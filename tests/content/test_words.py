"""The text of the project stands on its own: no loose ends, no references to absent documents."""

import re
from pathlib import Path

import pytest

from tests.content.tree import name, text_files

LOOSE_ENDS = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")

ABSENT = re.compile(r"\bDESIGN\b|\b[a-z]+-notes\b|\bengine-telemetry\b|/work/")
"""Ways of citing a document or place that a reader of this repository does not have."""

DOCUMENT = re.compile(r"(?<![\w/:.-])(?:[\w-]+/)*[\w-]+\.md\b")

OUTSIDE_ALLOWED = {".ci/run"}
"""Where a path outside the repository may stand."""

FILES = [path for path in text_files() if path != Path(__file__)]
DOCUMENTS = [name(path) for path in text_files() if path.suffix == ".md"]


@pytest.mark.parametrize("path", FILES, ids=name)
def test_text_stands_on_its_own(path: Path) -> None:
    faults = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        for pattern in (LOOSE_ENDS, ABSENT):
            faults += [f"{number}: {found[0]}" for found in pattern.finditer(line)]
        if "../shared" in line and name(path) not in OUTSIDE_ALLOWED:
            faults.append(f"{number}: a path outside the repository")
    assert not faults


@pytest.mark.parametrize("path", FILES, ids=name)
def test_documents_that_are_cited_exist(path: Path) -> None:
    cited = set(DOCUMENT.findall(path.read_text(encoding="utf-8")))
    assert not [document for document in cited if not any(_ends(p, document) for p in DOCUMENTS)]


def _ends(path: str, document: str) -> bool:
    return path == document or path.endswith(f"/{document}")
