"""What the code names is documented, whatever list it stands in: lists may be forgotten, too.

The pages themselves are compared with the lists elsewhere.
"""

import ast
import re
import typing
from collections.abc import Iterator
from functools import cache

import pytest
import yaml
from pydantic import BaseModel

from detector.config.catalog import Setting, dotted, every_setting
from detector.config.root import Settings
from detector.rules.catalog import RULES
from tests.content.tree import CODE, ROOT, pages, python_files

NO_METRICS = {"bleedwatch_severity", "bleedwatch_session", "bleedwatch_writes"}
"""A label of alerts, a cookie, and a lock of the database."""

PAGE_OF = {"outputs": "outputs", "scrape.targets": "runtime-metrics"}
"""Pages on groups of settings that their row only leads to."""


@cache
def _texts() -> frozenset[str]:
    """Return every text that stands in the code."""
    return frozenset(
        node.value
        for path in python_files(*CODE)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _groups(kind: object) -> Iterator[type[BaseModel]]:
    """Yield the groups of settings in a type, those inside of them too."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
        for info in kind.model_fields.values():
            yield from _groups(info.annotation)
    for inner in typing.get_args(kind):
        yield from _groups(inner)


GROUPED = {
    dotted(setting.path): (setting, groups)
    for setting in every_setting(Settings)
    if (groups := [one for kind in setting.types for one in _groups(kind)])
}
"""Settings that are lists or optional groups: their fields are settings of their own."""


def test_every_metric_is_documented() -> None:
    docs = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    listed = set(re.findall(r"^\| `(bleedwatch_\w+)` \|", docs, re.M))
    named = {text for text in _texts() if re.fullmatch(r"bleedwatch_[a-z0-9_]+", text)}
    assert len(named) > 80
    assert {one for one in named - NO_METRICS if not {one, f"{one}_info"} & listed} == set()


def test_every_rule_is_in_the_catalog() -> None:
    named = {text for text in _texts() if re.fullmatch(r"BW\d{3}", text)}
    assert named == RULES.keys()


def test_every_alert_that_is_installed_is_documented() -> None:
    (path,) = (ROOT / "dashboards" / "rules").glob("alerts.yaml")
    rules = [
        rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]
    ]
    page = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(Bleedwatch\w+)` \|", page, re.M)
    assert sorted(listed) == sorted({rule["alert"] for rule in rules})


def test_groups_of_settings_are_seen() -> None:
    assert {"tenancy.rules", "template.custom", "kv_events.sources", *PAGE_OF} <= GROUPED.keys()


@pytest.mark.parametrize("name", GROUPED)
def test_every_field_of_a_group_of_settings_is_documented(name: str) -> None:
    setting, groups = GROUPED[name]
    words = set(re.findall(r"`(\w+)`|^\| `(\w+)\.", _page_of(setting), re.M))
    told = {word for found in words for word in found if word}
    fields = {field for group in groups for field in group.model_fields}
    assert fields - told == set()


def _page_of(setting: Setting) -> str:
    name = dotted(setting.path)
    texts = [path.read_text(encoding="utf-8") for path in pages(PAGE_OF.get(name, "configuration"))]
    if name in PAGE_OF:
        return "\n".join(texts)
    (page,) = [text for text in texts if f"\n| `{name}` |" in text]
    return page
