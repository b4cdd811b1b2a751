"""What the documents let their readers type runs, block by block, where it needs no server."""

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.content.doc_commands import DOCUMENTS, Block, blocks
from tests.content.sample_folder import fill_folder
from tests.content.shell_words import Command, commands_of
from tests.content.tree import name
from tests.e2e.program import Capture, call, run

ELSEWHERE = re.compile(
    r"run (?:worker|sidecar|tap|api)|run all --listen|topics|commonness|probe|findings|incidents"
    r"|trace REQUEST$|trace \S+ --|audit --tenant|verify \S+ --text"
    r"|.* --(?:url|monitor|kafka)\b"  # ask a server
    r"|eval"  # measures for minutes
)
"""Commands that need more than files; the rest of the arguments behind `bleedwatch`."""

STDIN = {"run": "server.log", "check": "deployment.yaml"}
"""What the program before it in the pipe would have written."""


def ours(block: Block) -> list[Command]:
    """Return the commands of a block that are run here, and what it exports."""
    return [
        one
        for one in commands_of(block.text, block.line)
        if one.words[0] == "export"
        or (one.words[0].endswith("bleedwatch") and not ELSEWHERE.match(" ".join(one.words[1:])))
    ]


def _runs(block: Block) -> bool:
    return any(one.words[0] != "export" for one in ours(block))


RUN = [block for path in DOCUMENTS for block in blocks(path) if _runs(block)]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, str]]:
    folder = tmp_path_factory.mktemp("filled")
    return folder, fill_folder(folder)


@pytest.fixture
def folder(
    filled: tuple[Path, Mapping[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Give a copy of the folder in which whoever reads the documents sits, with a store."""
    here = Path(shutil.copytree(filled[0], tmp_path / "here"))
    monkeypatch.chdir(here)
    for variable in [each for each in os.environ if each.startswith("BLEEDWATCH_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("BLEEDWATCH_STORE__URL", "sqlite:///store.db")
    monkeypatch.setenv("BLEEDWATCH_HTTP__URL", "http://127.0.0.1:1")  # refuses at once
    return here


@pytest.mark.parametrize("block", RUN, ids=lambda block: f"{name(block.path)}:{block.line}")
def test_it_runs_as_it_stands(
    block: Block,
    folder: Path,
    filled: tuple[Path, Mapping[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    for command in ours(block):
        words = [_in_place(word, folder, filled[1]) for word in command.words[1:]]
        if command.words[0] == "export":
            monkeypatch.setenv(*words[0].split("=", 1))
        else:
            code, told = _ended(words, folder, capsys)
            assert code in (0, 1), f"{name(block.path)}:{command.line}: exit code {code}\n{told}"


def _ended(words: list[str], folder: Path, capsys: Capture) -> tuple[int, str]:
    """Run the program; return its exit code and what it tells."""
    if "-" in words:
        given = (folder / STDIN[words[0]]).read_bytes()
        done = run(*words, stdin=given, cwd=folder)
        return done.returncode, done.stderr.decode()
    if words[:2] == ["key", "new"]:
        Path(words[2]).unlink(missing_ok=True)
    code, _, told = call(capsys, *words)
    return code, told


def _in_place(word: str, folder: Path, others: Mapping[str, str]) -> str:
    """Return what stands here for a word of the documents."""
    if word in ("ID", "3f9a1c2b4d5e"):
        found = json.loads((folder / "findings.jsonl").read_text().splitlines()[0])
        return str(found["id"])
    return others.get(word, word.removeprefix("/var/log/kv/"))


def test_many_blocks_are_run() -> None:
    assert len(RUN) >= 30
