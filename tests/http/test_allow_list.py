"""A verdict becomes an allow-list that the detector reads: nothing of it is found any more."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from detector.finding import Finding
from ingest.key_file import new_secret
from tests.e2e.program import Capture, call
from tests.e2e.traffic import pairs, write_config, write_jsonl
from tests.http.kit import READER, Served
from tests.store.made import found

PAIRS: Final = 3


class Place:
    """A log, the key under which it is searched, and an api that holds what was found."""

    def __init__(self, api: Served, folder: Path, capsys: Capture) -> None:
        self.api = api
        self.folder = folder
        self._capsys = capsys
        new_secret(folder / "key")
        self.log = write_jsonl(folder / "log.jsonl", pairs(PAIRS))
        self.findings = folder / "findings.jsonl"
        self.found = self.replay("--save", self.findings)
        lines = self.findings.read_bytes().splitlines()
        api.record(*(msgspec.json.decode(line, type=Finding) for line in lines))

    def replay(self, *more: str | Path, **detection: Any) -> list[str]:
        """Search the log; return the ids of what is found."""
        config = write_config(
            self.folder / "config.json",
            detection={"commonness": {"learning_ms": 0}, **detection},
        )
        code, out, err = call(
            self._capsys, "replay", self.log, "--config", config, "--key-file",
            self.folder / "key", "--fail-on", "never", "-o", "json", *more,
        )  # fmt: skip
        assert code == 0, err
        return [one["id"] for one in json.loads(out)["findings"]]

    def ask(self, *words: str | Path, tokens: str = "write-tokens") -> tuple[int, str, str]:
        """Run a command against the api."""
        told = (f"client.url={self.api.url}", f"client.token_file={self.folder / tokens}")
        return call(self._capsys, *words, "--set", told[0], "--set", told[1])


@pytest.fixture
def place(api: Served, tmp_path: Path, capsys: Capture) -> Place:
    return Place(api, tmp_path, capsys)


def test_what_was_judged_a_false_positive_is_not_found_again(place: Place) -> None:
    assert len(place.found) == PAIRS
    wrong, *right = place.found
    assert place.ask("findings", "verdict", wrong, "false_positive")[0] == 0
    listed = place.folder / "judged.jsonl"
    code, out, err = place.ask("findings", "allow-list", "--save", listed, tokens="read-tokens")
    assert (code, out) == (0, ""), err
    assert "1 findings, 23 shingles" in err
    assert sorted(place.replay(filter={"allow_lists": [str(listed)]})) == sorted(right)
    (line,) = listed.read_text().splitlines()
    assert json.loads(line).keys() == {"key", "shingles", "finding"}
    assert place.ask("findings", "allow-list")[1].strip() == line


def test_findings_without_digests_are_counted(place: Place) -> None:
    place.api.record(found("bare", 0))
    place.ask("findings", "verdict", "bare", "false_positive")
    code, out, err = place.ask("findings", "allow-list")
    assert (code, out) == (0, "")
    assert "1 more were judged false positives and have no digests" in err


def test_a_list_that_cannot_be_written_is_told(place: Place) -> None:
    code, _, err = place.ask("findings", "allow-list", "--save", place.folder / "none" / "list")
    assert code == 2
    assert "cannot be written: no such file" in err


def test_the_list_has_pages_and_needs_a_token(place: Place) -> None:
    with place.api.client() as nobody, place.api.client(READER) as client:
        assert nobody.get("/v1/allow-list").status_code == 401
        assert nobody.get(f"/v1/findings/{place.found[0]}/digests").status_code == 401
        for one in place.found:
            place.ask("findings", "verdict", one, "false_positive")
        first = client.get("/v1/allow-list", params={"limit": 2}).json()
        rest = client.get("/v1/allow-list", params={"limit": 2, "cursor": first["next"]}).json()
        assert client.get("/v1/allow-list", params={"cursor": "x"}).status_code == 400
        assert client.get("/v1/findings/nobody/digests").status_code == 404
        listed = client.get("/v1/findings").json()["findings"]
    named = [one["finding"] for one in (*first["entries"], *rest["entries"])]
    assert named == sorted(place.found)
    assert rest["next"] is None
    assert {one["finding"]["digests"] for one in listed} == {None}


def test_the_owner_of_a_text_asks_the_api(place: Place, tmp_path: Path) -> None:
    ids = tmp_path / "ids.json"
    ids.write_text(json.dumps(list(pairs(PAIRS)[0].prompt_ids)))
    key = ("--key-file", tmp_path / "key")
    (mine,) = [
        one["id"] for line in place.findings.read_text().splitlines()
        if (one := json.loads(line))["source"]["request_id"] == pairs(PAIRS)[0].request_id
    ]  # fmt: skip
    (other, *_) = [one for one in place.found if one != mine]
    code, _, err = place.ask("verify", mine, "--ids", ids, *key)
    assert (code, "holds 23 of the 23 shingles" in err) == (0, True), err
    assert place.ask("verify", other, "--ids", ids, *key)[0] == 1
    code, _, err = place.ask("verify", "nobody", "--ids", ids, *key)
    assert (code, "there is no such finding" in err) == (2, True)
