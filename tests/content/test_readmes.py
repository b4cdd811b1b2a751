"""Both READMEs say the same, are short, and have the figures of the documents that define them."""

import re
from pathlib import Path

import pytest

from tests.content.doc_commands import blocks, mentions
from tests.content.shell_words import commands_of
from tests.content.tree import ROOT, name

ENGLISH, JAPANESE = PAGES = [ROOT / "README.md", ROOT / "README.ja.md"]
EVALUATION = ROOT / "docs" / "evaluation.md"

LONGEST = 199

HEADS = {
    "measured": ("recorded set | generated set", "記録 | 生成"),
    "compared": ("finds a run of 64 tokens", "1,000 トークン中の 64 トークンの一致"),
    "speed": ("value |", "値 |"),
}
"""How the first row of each table of figures begins, behind its empty first cell."""

Rows = list[list[str]]


def table(page: Path, head: str) -> Rows:
    """Return the cells of the table whose first row begins with `head`."""
    text = page.read_text(encoding="utf-8")
    (body,) = re.findall(rf"^\| (?:\| )?{re.escape(head)}.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.M)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in body.splitlines()]


def numbers(cells: list[str]) -> list[list[str]]:
    """Return the numbers of each cell, sorted: languages put them in another order."""
    return [sorted(re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", cell)) for cell in cells]


def figures(kind: str, page: Path) -> list[list[list[str]]]:
    """Return the numbers of a table, without what its rows are called."""
    return [numbers(row[1:]) for row in table(page, HEADS[kind][page == JAPANESE])]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_it_is_short(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("kind", HEADS)
def test_both_have_the_same_figures(kind: str) -> None:
    assert figures(kind, JAPANESE) == figures(kind, ENGLISH) != []


def test_both_let_their_readers_type_the_same() -> None:
    typed = [
        {
            (*command.variables, *command.words)
            for block in (*blocks(page), *mentions(page))
            for command in commands_of(block.text, block.line)
        }
        for page in PAGES
    ]
    assert typed[0] == typed[1]
    assert len(typed[0]) > 20


def test_both_name_as_many_blind_spots() -> None:
    counts = []
    for page, head in zip(PAGES, ("What it does not see", "見えないもの"), strict=True):
        (section,) = re.findall(rf"^## {head}$(.*?)^## ", page.read_text("utf-8"), re.M | re.S)
        counts.append(len(re.findall(r"^- ", section, re.M)))
    assert counts[0] == counts[1] > 5


def test_the_figures_are_those_of_the_evaluation() -> None:
    told = {row[0].strip("`"): row[1:] for row in table(EVALUATION, "recorded | generated")}
    variants = {row[0].strip("`"): row[1:] for row in table(EVALUATION, "clean variant")}
    clean = [re.findall(r"\d+", cell) for cell in variants["with_history"]]
    dense = [re.findall(r"\d+", cell) for cell in variants["density_x12_folded"]]
    cold = [re.findall(r"\d+", cell) for cell in variants["no_history"]]
    delays = [cell.split(", ") for cell in told["detection_delay_seconds_p50`, `_p95"]]
    bleeds = [f"{sum(counts)}" for counts in _bleeds()]
    rows = figures("measured", ENGLISH)
    assert rows[0] == numbers(told["requests"])
    assert rows[1] == numbers(told["raw_10gram_flagged"])
    assert rows[2] == [sorted(cell) for cell in clean]
    assert rows[3] == [[cell[0]] for cell in cold]
    assert rows[4] == [sorted((cell[0], cell[-1])) for cell in dense]
    found = _percent(told["recall_all"])
    assert rows[5] == [sorted(pair) for pair in zip(found, bleeds, strict=True)]
    assert rows[6] == [[one] for one in _percent(told["recall_16plus"])]
    assert rows[7] == [[one] for one in _percent(told["recall_16plus_high"])]
    assert [row[0] for row in rows[8]] == _percent(told["recall_repeat"])
    assert rows[9] == [[one] for one in _percent(told["right_source"])]
    assert rows[10] == [sorted(f"{float(one):.1f}" for one in cell) for cell in delays]


def _percent(shares: list[str]) -> list[str]:
    return [f"{100 * float(share):.3g}" for share in shares]


def _bleeds() -> list[list[int]]:
    """Return the numbers of bleeds by length, of the recorded and of the generated set."""
    rows = table(EVALUATION, "length")
    return [[int(row[at].split(",")[0]) for row in rows if row[at]] for at in (1, 2)]
