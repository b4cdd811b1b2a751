"""docs/rules.md has one section for each rule, with the title, severity and maturity it has."""

import pkgutil
import re
from importlib import import_module

import pytest

from detector import rules
from detector.rules import runtime
from detector.rules.catalog import RULES
from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
PARTS = ("**Blind spots.**", "**First steps.**")


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_its_section(rule: str) -> None:
    one = RULES[rule]
    found = re.search(rf"^## {rule}: {re.escape(one.title)}$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert found, f"docs/rules.md has no section `## {rule}: {one.title}`"
    assert f"**Severity** {one.severity.value}" in found[1]
    assert f"**Maturity** {one.maturity}." in found[1]
    assert all(part in found[1] for part in PARTS)


def test_no_rule_is_documented_that_does_not_exist() -> None:
    assert set(re.findall(r"^## (BW\d+)", PAGE, re.M)) == RULES.keys()


def test_every_rule_of_the_code_is_listed() -> None:
    modules = [
        import_module(f"{rules.__name__}.{one.name}")
        for one in pkgutil.iter_modules(rules.__path__)
    ]
    named = {
        value
        for module in modules
        for value in (*vars(module).values(), *runtime.RULE_OF.values())
        if isinstance(value, str) and re.fullmatch(r"BW\d{3}", value)
    }
    assert named == RULES.keys()
