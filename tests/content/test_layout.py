"""Files say what they are for and stay small; so do functions; package files stay empty."""

import ast
from pathlib import Path

import pytest

from tests.content.tree import CODE, ROOT, name, python_files, text_files

MAX_FILE_LINES = 400
MAX_BODY_LINES = 40

LONG = {
    "docs/openapi-api.json": "written by `make api-description`",
    "docs/openapi-sidecar.json": "written by `python -m ingest.push.openapi`",
    "dashboards/json/detector.json": "written by `make dashboards`",
    "dashboards/json/incidents.json": "written by `make dashboards`",
    "dashboards/json/overview.json": "written by `make dashboards`",
    "dashboards/json/sidecars.json": "written by `make dashboards`",
    "helm/bleedwatch/values.schema.json": "written by `make chart`",
    "tests/chart/release-0.0.1.yaml": "what the chart of another release has rendered",
}
"""Files that nobody writes by hand, which may be longer, and where they come from."""

GROWING = {"CHANGELOG.md"}
"""Gets a line with every change until the next release."""

FILES = python_files(*CODE, "tests")
TEXTS = [path for path in text_files() if name(path) not in {*LONG, *GROWING}]
UNCOMPILED = [path for path in python_files(*CODE) if path.parent.name != "kernels"]
"""A compiled kernel is one loop over local variables; taking it apart costs speed."""


@pytest.mark.parametrize("path", TEXTS, ids=name)
def test_no_file_is_long(path: Path) -> None:
    assert _lines(path) <= MAX_FILE_LINES


def test_every_exception_is_needed() -> None:
    assert [file for file in LONG if _lines(ROOT / file) <= MAX_FILE_LINES] == []


@pytest.mark.parametrize("path", FILES, ids=name)
def test_every_file_says_what_it_is_for(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    if path.name == "__init__.py":
        assert source == "", "package files stay empty: a re-export would load heavy libraries"
        return
    docstring = ast.get_docstring(ast.parse(source))
    assert docstring, "the module has no docstring"
    first, _, rest = docstring.partition("\n")
    assert first.endswith((".", ":", "?")) or rest, f"no sentence: {first!r}"


@pytest.mark.parametrize("path", UNCOMPILED, ids=name)
def test_every_function_fits_a_screen(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    long = [
        f"{node.name}: {_body_lines(node)} lines"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and _body_lines(node) > MAX_BODY_LINES
    ]
    assert not long


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of code from the first statement after the docstring to the last."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
