"""`bleedwatch findings` and `bleedwatch incidents` over a real API, with tokens of both kinds."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.program import Capture, call
from tests.http.kit import READER, Served
from tests.store.made import found

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(api: Served, tmp_path: Path, capsys: Capture) -> Run:
    """Give what calls a command with the token of somebody who may write, or another file."""
    api.record(found("f1", 10), found("f2", 20, rule="BW101", sink="initech"))

    def called(*words: str, tokens: str = "write-tokens") -> tuple[int, str, str]:
        told = [f"client.url={api.url}", f"client.token_file={tmp_path / tokens}"]
        # A token file of the api holds names and a comment too: the first token of it is taken.
        return call(capsys, *words, "--set", told[0], "--set", told[1])

    return called


def test_findings_are_listed_shown_and_judged(run: Run) -> None:
    code, out, err = run("findings", "list", "-o", "json")
    assert (code, [one["finding"]["id"] for one in json.loads(out)]) == (0, ["f2", "f1"]), err
    assert "BW101" in run("findings", "list", "--tenant", "initech")[1]
    assert run("findings", "list", "--rule", "BW001", "-o", "jsonl")[1].count("\n") == 1
    code, out, err = run("findings", "verdict", "f1", "confirmed")
    assert (code, "confirmed" in out, "walt" in out) == (0, True, True), err
    code, out, err = run("findings", "show", "f1")
    assert code == 0
    assert "What was subtracted" in out
    assert "verdict: confirmed by walt; incident: inc-f1" in err


def test_incidents_fit_a_narrow_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("incidents", "list")[1].splitlines()
    assert lines[0].split() == ["high", "ongoing", "+20.000", "s", "2", "findings", "in", "a"]
    assert lines[1] == "  inc-f1"
    assert lines[2].startswith("  Finding f1 of BW001.")
    assert max(map(len, lines)) <= 80


def test_incidents_are_listed_taken_silenced_held_and_ended(run: Run) -> None:
    code, out, err = run("incidents", "list", "-o", "json")
    assert (code, [one["id"] for one in json.loads(out)]) == (0, ["inc-f1"]), err
    assert "inc-f1 is taken by walt" in run("incidents", "ack", "inc-f1", "--reason", "mine")[2]
    assert "nothing is sent" in run("incidents", "silence", "inc-f1", "--minutes", "5")[2]
    assert run("incidents", "hold", "inc-f1")[2].strip() == "held"
    assert "inc-f1 is resolved" in run("incidents", "resolve", "inc-f1")[2]
    assert "inc-f1" not in run("incidents", "list")[1]
    assert "inc-f1" in run("incidents", "list", "--state", "resolved")[1]
    out = run("incidents", "show", "inc-f1")[1]
    assert all(word in out for word in ("Finding f1 of BW001.", "acknowledged", "walt", "mine"))
    assert run("incidents", "hold", "inc-f1", "--release")[2].strip() == "released"
    erased = json.loads(run("incidents", "erase-tenant", "globex", "-o", "json")[1])
    assert erased[0]["findings"] == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("findings", "show", "nothing"), "there is no such finding"),
        (("findings", "list", "--rule", "BW1"), "query.rule"),
        (("incidents", "list", "--state", "odd"), "query.state"),
        (("incidents", "ack", "../findings"), "Nothing matches"),
    ],
)
def test_what_the_api_refuses_is_told(run: Run, words: tuple[str, ...], says: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert says in err


def test_tokens_that_may_not_and_apis_that_are_not_there_are_told(
    run: Run, capsys: Capture
) -> None:
    code, _, err = run("incidents", "ack", "inc-f1", tokens="read-tokens")
    assert (code, "may only read" in err, READER in err) == (2, True, False)
    assert "client.token_file" in err
    code, _, err = call(capsys, "incidents", "list", "--set", "client.url=http://127.0.0.1:9")
    assert (code, "does not answer" in err) == (2, True)
