"""No function stands twice: what is the same for some lines belongs in one place."""

import ast
from collections import defaultdict

from tests.content.tree import CODE, name, python_files

LEAST_LINES = 5

FOLDERS = (*CODE, "dashboards", "helm", "tests")


def test_no_body_of_a_function_stands_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in python_files(*FOLDERS):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[ast.get_docstring(node, clean=False) is not None :]
                if body and _lines(body) >= LEAST_LINES:
                    places["\n".join(map(ast.unparse, body))].append(f"{name(path)}:{node.lineno}")
    assert [found for found in places.values() if len(found) > 1] == []
    assert len(places) > 2_000


def _lines(body: list[ast.stmt]) -> int:
    return (body[-1].end_lineno or 0) - body[0].lineno + 1
