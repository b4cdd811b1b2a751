"""A process that is killed between and inside its transactions loses and doubles nothing."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random

from exporters.store.tables import metadata
from tests.content.tree import ROOT
from tests.store.recording_main import record

KILLS = 3


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return all that a store holds, sorted."""
    with closing(sqlite3.connect(path)) as connection:
        return {
            name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr)
            for name in metadata.tables
        }


def killed_after(path: Path, transactions: int) -> None:
    """Run the recorder in a process of its own and kill it after some transactions."""
    command = [sys.executable, "-m", "tests.store.recording_main", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        for _ in range(transactions):
            assert process.stdout.readline(), "it ended before it was killed"
        process.kill()
    assert process.returncode < 0


def test_what_was_killed_goes_on_to_the_same_store(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole.db", tmp_path / "killed.db"
    record(whole)
    chance = Random(11)
    for _ in range(KILLS):
        killed_after(killed, chance.randrange(5, 40))
    record(killed)
    expected, found = rows(whole), rows(killed)
    assert len(expected["findings"]) == 240
    assert len(expected["outbox"]) > 4
    assert found == expected
