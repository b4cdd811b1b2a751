"""docs/attacks.md names tests that exist, one for each attempt, and all tests of hostile input."""

import ast
import re
from pathlib import Path

from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")

ROW = re.compile(r"^\| (\d+) \| (.+) \| (.+) \| (.+) \|$", re.M)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")

LEAST = 40

SOUND = {"test_a_sound_file_is_still_read", "test_a_long_name_is_still_matched"}
"""Tests that stand beside attempts to show that not everything is refused."""


def _tests_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }


def test_attempts_are_numbered_and_many() -> None:
    numbers = [int(row[1]) for row in ROW.finditer(PAGE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= LEAST


def test_every_attempt_has_a_test_that_exists() -> None:
    missing = []
    for row in ROW.finditer(PAGE):
        named = NAMED.findall(row[4])
        if not named:
            missing.append(f"{row[1]}: no test")
        for file, test in named:
            path = ROOT / file
            if not path.is_file() or test not in _tests_of(path):
                missing.append(f"{row[1]}: {file}::{test}")
    assert not missing


def test_every_test_of_hostile_input_is_named() -> None:
    named = {test for _, test in NAMED.findall(PAGE)}
    hostile = {
        test for path in (ROOT / "tests" / "hostile").glob("test_*.py") for test in _tests_of(path)
    }
    assert hostile - named <= SOUND
