"""The examples and the reasons on the page docs/input-format.md are those of the code."""

import re
from pathlib import Path

import yaml

from ingest.coverage import Coverage
from ingest.sources.field_map import FieldMap
from ingest.sources.jsonl import JsonlLog
from ingest.tenancy import Tenancy, TenancySettings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "input-format.md").read_text(encoding="utf-8")
CODE = ("door.py", "sources/jsonl.py", "sources/lines.py")
SHARED_CODE = (ROOT / "detector" / "sketch" / "token_table.py").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


def test_the_example_line_is_read() -> None:
    coverage = Coverage()
    lines = enumerate((block.strip().encode() for block in _blocks("json")), 1)
    (request,) = JsonlLog(lines, engine=None, coverage=coverage)
    assert request.prompt_ids == [151644, 872, 198]
    assert not coverage.broken_by_reason


def test_the_example_settings_load() -> None:
    mapping, rules = (yaml.safe_load(block) for block in _blocks("yaml"))
    assert FieldMap.model_validate(mapping["sources"]["jsonl"]).time == "rfc3339"
    Tenancy(TenancySettings.model_validate(rules["tenancy"]))


def test_every_field_of_the_form_is_on_the_page() -> None:
    names = set(FieldMap.model_fields) - {"time", "identity"}
    assert not {name for name in names if f"`{name}`" not in PAGE}


def test_every_reason_is_on_the_page_and_no_other() -> None:
    code = SHARED_CODE + "".join((ROOT / "ingest" / name).read_text("utf-8") for name in CODE)
    raised = set(re.findall(r'(?:RecordError|\.broken|\._lose)\(\s*"(\w+)"', code))
    assert raised == set(re.findall(r"^\| `(\w+)` \| .* (?:lines|reader|door) \|$", PAGE, re.M))
