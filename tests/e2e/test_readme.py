"""The section "Your own logs" of the README, typed as it stands, finds a bleed and explains it."""

import re
from pathlib import Path

import pytest

from tests.content.doc_commands import blocks
from tests.content.sample_folder import day, write_log
from tests.content.tree import ROOT, name
from tests.e2e.pasted import checkout, paste

PAGES = [ROOT / "README.md", ROOT / "README.ja.md"]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_your_own_logs(page: Path, tmp_path: Path) -> None:
    (rules,) = re.findall(r"^```yaml\n(tenancy:.*?)^```", page.read_text("utf-8"), re.M | re.S)
    (block,) = [one.text for one in blocks(page) if "replay server.log" in one.text]
    found_by, explain = block[: block.index("\n", block.index("replay"))], block.splitlines()[-1]
    folder = checkout(tmp_path)
    (folder / "bleedwatch.yaml").write_text(rules)
    before, now = day(("acme-90aa", "globex-81f3"))
    write_log(folder / "server.log.1", before)
    write_log(folder / "server.log", now)

    done = paste(f"set -e\n{found_by}", folder)
    assert done.returncode == 1, done.stderr
    assert "error" not in done.stderr
    assert re.search(r"^high +high +BW001 +server +globex +acme +32$", done.stdout, re.M)
    (identifier,) = re.findall(r"^  ([0-9a-f]{12})  ", done.stdout, re.M)

    assert "explain ID " in explain
    done = paste(explain.replace(" ID ", f" {identifier} "), folder)
    assert done.returncode == 0, done.stderr
    assert "What decided" in done.stdout
