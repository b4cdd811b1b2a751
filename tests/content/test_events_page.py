"""docs/engine-events.md lists every pattern that comes with the program, and no other."""

import re

from detector.signals import BUILT_IN, built_in, parse_patterns
from ingest.schema_records import EventKind
from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "engine-events.md").read_text(encoding="utf-8")

ROW = re.compile(r"^\| `(\w+)` \| (?:`(\w+)` )?\| (vllm|sglang|any) \| ([^|]+) \|", re.M)


def test_every_pattern_is_listed_with_its_kind_and_detail() -> None:
    listed = {
        (name, kind, detail or None, engine)
        for kind, detail, engine, names in ROW.findall(PAGE)
        for name in re.findall(r"`([a-z0-9-]+)`", names)
    }
    known = {
        (one.name, str(one.kind), one.detail, "any" if one.name == "http-400" else engine)
        for engine in BUILT_IN
        for one in built_in(engine).patterns
    }
    assert listed == known


def test_no_row_names_a_kind_that_does_not_exist() -> None:
    kinds = re.findall(r"^\| `(\w+)` \|", PAGE, re.M)
    assert kinds
    assert set(kinds) <= set(EventKind)


def test_the_example_of_a_pattern_file_is_one() -> None:
    (example,) = re.findall(r"```yaml\n(version: 1\n.*?)```", PAGE, re.S)
    (pattern,) = parse_patterns(example, "docs/engine-events.md").patterns
    assert pattern.compiled is not None
