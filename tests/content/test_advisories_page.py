"""docs/advisories.md lists every advisory and every feature, program by program, and no other."""

import re

from detector.advisories.load import advisories, features
from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "advisories.md").read_text(encoding="utf-8")

ROW = re.compile(r"^\| `([\w.-]+)` \| (.+) \| (.+) \|$", re.M)


def test_every_advisory_and_feature_is_listed() -> None:
    (section,) = re.findall(r"^## What is known$(.*)", PAGE, re.M | re.S)
    listed = {
        program: (re.findall(r"`([^`]+)`", ids), re.findall(r"`([^`]+)`", words))
        for program, ids, words in ROW.findall(section)
    }
    known = {
        program: ([one.id for one in advisories() if program in one.packages], list(words))
        for program, words in features().items()
    }
    assert listed == known
