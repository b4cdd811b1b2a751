"""`bleedwatch verify` as the owner of a text runs it: files in, a sentence out, nothing else."""

import json
from pathlib import Path
from typing import Final

import pytest
from tokenizers import ByteLevelBPETokenizer, Tokenizer
from tokenizers.models import WordLevel

from detector.sample.traffic import SampleRequest
from ingest.key_file import load_secret, new_secret
from tests.content.tree import ROOT
from tests.e2e.program import Capture, call
from tests.e2e.traffic import pairs, write_config, write_jsonl

CANARY: Final = (
    "Meine Kontonummer ist CANARY-4711, bitte an niemanden weitergeben, auch nicht intern."
)


class Desk:
    """A finding whose source is a text of ours, and the files that its owner has."""

    def __init__(self, folder: Path, capsys: Capture) -> None:
        self.folder = folder
        self._capsys = capsys
        new_secret(folder / "key")
        (folder / "model").mkdir()
        tokenizer = ByteLevelBPETokenizer()
        tokenizer.train([str(ROOT / "README.md")], vocab_size=600, show_progress=False)
        tokenizer.save(str(folder / "model" / "tokenizer.json"))
        ids = tokenizer.encode(CANARY).ids
        self.requests: list[SampleRequest] = pairs(1, content=ids)
        log = write_jsonl(folder / "log.jsonl", self.requests)
        config = write_config(folder / "config.json", detection={"commonness": {"learning_ms": 0}})
        self.findings = folder / "findings.jsonl"
        code, out, err = call(
            capsys, "replay", log, "--config", config, "--key-file", folder / "key",
            "--save", self.findings, "--fail-on", "never", "-o", "json",
        )  # fmt: skip
        assert code == 0, err
        ((self.finding),) = (one["id"] for one in json.loads(out)["findings"])
        (folder / "mine.txt").write_text(f"Sehr geehrte Damen und Herren!\n{CANARY}\nGruß")
        (folder / "other.txt").write_text(
            "Something else, as long as it is not what was found." * 3
        )
        (folder / "ids.json").write_text(json.dumps(ids))

    def verify(self, *words: str | Path, key: str = "key") -> tuple[int, str, str]:
        """Run the command on the saved findings."""
        return call(
            self._capsys, "verify", self.finding[:12], "--from", self.findings,
            "--key-file", self.folder / key, *words,
        )  # fmt: skip

    def text(self, name: str) -> tuple[str | Path, ...]:
        """Return the flags of a text."""
        return ("--text", self.folder / name, "--tokenizer", self.folder / "model")


@pytest.fixture
def desk(tmp_path: Path, capsys: Capture) -> Desk:
    return Desk(tmp_path, capsys)


def test_the_owner_sees_that_it_is_his_text_and_where(desk: Desk) -> None:
    code, out, err = desk.verify(*desk.text("mine.txt"))
    assert (code, out) == (0, "")
    assert "of the text" not in err
    assert "shingles that the finding rests on: its tokens" in err
    assert "CANARY" not in err
    found = json.loads(desk.verify(*desk.text("mine.txt"), "-o", "json")[1])
    assert found["held"] > found["shingles"] * 0.8, "but for the tokens at both ends"
    (stretch,) = found["stretches"]
    assert 0 < stretch["start"] < stretch["end"] < found["tokens"]


def test_another_text_is_not_what_was_found(desk: Desk) -> None:
    code, out, err = desk.verify(*desk.text("other.txt"))
    assert (code, out) == (1, "")
    assert "holds none of the" in err


def test_token_ids_do_as_well(desk: Desk) -> None:
    code, out, _ = desk.verify("--ids", desk.folder / "ids.json", "-o", "json")
    found = json.loads(out)
    assert (code, found["held"]) == (0, found["shingles"])


def test_a_rotated_key_is_named_and_the_earlier_one_still_does(desk: Desk) -> None:
    new_secret(desk.folder / "next")
    ids = ("--ids", desk.folder / "ids.json")
    code, _, err = desk.verify(*ids, key="next")
    made, held = (load_secret(desk.folder / name).keys().key_id for name in ("key", "next"))
    assert code == 2
    assert f"made under key {made}" in err
    assert f"holds {held}" in err
    assert "next: give the secret" in err
    earlier = f'sealing.accepted_key_files=["{desk.folder / "key"}"]'
    assert desk.verify(*ids, "--set", earlier, key="next")[0] == 0


def test_what_is_missing_or_wrong_is_told_without_what_the_files_hold(desk: Desk) -> None:
    bad = desk.folder / "bad.json"
    bad.write_text(json.dumps({"ids": CANARY}))
    (desk.folder / "latin.txt").write_bytes(b"\xff\xfe CANARY")
    (desk.folder / "long.txt").write_bytes(b"CANARY " * 1_300_000)
    (desk.folder / "other").mkdir()
    Tokenizer(WordLevel({"a": 0}, unk_token="[UNK]")).save(
        str(desk.folder / "other" / "tokenizer.json")
    )
    cases = {
        (): "either a text or its token ids",
        ("--text", desk.folder / "mine.txt"): "needs the tokenizer",
        ("--ids", bad): "no JSON list of token ids",
        ("--ids", desk.folder / "none"): "cannot read it",
        ("--text", desk.folder / "latin.txt", "--tokenizer", desk.folder / "model"): "not UTF-8",
        ("--text", bad, "--tokenizer", desk.folder / "mine.txt"): "tokenizer cannot be used",
        ("--text", bad, "--tokenizer", desk.folder / "other"): "tokenizer cannot read the text",
        ("--text", desk.folder / "long.txt", "--tokenizer", desk.folder / "model"): "larger than 8",
    }
    for words, says in cases.items():
        code, out, err = desk.verify(*words)
        assert (code, out) == (2, ""), words
        assert says in err
        assert "CANARY" not in err


def test_a_finding_without_digests_is_told(desk: Desk) -> None:
    told = json.loads(desk.findings.read_text())
    desk.findings.write_text(json.dumps(told | {"digests": None}))
    code, _, err = desk.verify("--ids", desk.folder / "ids.json")
    assert (code, "has no digests" in err) == (2, True)
