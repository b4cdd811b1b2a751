"""`bleedwatch trace` over log files: who is named, who is not, and how it ends."""

import json
from pathlib import Path

import numpy as np
import pytest

from ingest.key_file import new_secret
from tests.e2e.program import Capture, call

HOUR_S = 3_600
SECRET = list(range(500, 540))


def words(name: int, count: int) -> list[int]:
    return np.random.default_rng(name).integers(1_000, 90_000, count).tolist()  # type: ignore[no-any-return]


def row(tenant: str, request: str, at_s: float, prompt: list[int], answer: list[int]) -> str:
    return json.dumps(
        {
            "request_id": request, "ts": at_s, "ts_end": at_s + 2, "node": "e", "tenant": tenant,
            "model": "m", "prompt_ids": prompt, "response_ids": answer,
        }
    )  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "day.jsonl"
    own = words(3, 30)
    rows = [
        row("acme", "source", HOUR_S, [*words(1, 50), *SECRET], words(2, 20)),
        *(row("other", f"o{at}", at * HOUR_S, words(10 + at, 40), words(50 + at, 40))
          for at in range(2, 20)),
        row("globex", "sink", 20 * HOUR_S, own, [*own, *SECRET, *words(4, 10)]),
        row("initech", "shared id", 20 * HOUR_S, own, words(5, 30)),
        row("umbrella", "shared id", 20 * HOUR_S + 1, own, words(6, 30)),
    ]  # fmt: skip
    path.write_text("".join(one + "\n" for one in rows))
    return path


def test_the_source_of_hours_ago_is_named(log: Path, capsys: Capture) -> None:
    code, out, err = call(capsys, "trace", "sink", str(log), "-o", "json")
    assert code == 1
    traced = json.loads(out)
    (source,) = traced["sources"]
    assert (source["party"]["tenant"], source["party"]["request_id"]) == ("acme", "source")
    assert source["runs"] == [
        {"source_start": 50, "sink_start": 30, "length": 40, "unexplained": 40}
    ]
    assert traced["explained"]["own_prompt"] == 21
    assert "1 probable source of the 80 tokens of sink" in err


def test_people_read_it_and_no_token_is_shown(log: Path, capsys: Capture) -> None:
    code, out, err = call(capsys, "trace", "sink", str(log), "--key-file", _key(log), "-o", "table")
    assert code == 1
    assert "high    acme/source  prompt, 40 tokens unexplained" in out
    assert "40 tokens at 30 from its 50" in out
    assert not {str(token) for token in SECRET} & set((out + err).replace(",", " ").split())


def test_a_response_without_a_source_ends_well(log: Path, capsys: Capture) -> None:
    code, out, err = call(capsys, "trace", "o7", str(log))
    assert (code, out) == (0, "")
    assert "0 probable sources" in err
    code, _, err = call(capsys, "trace", "sink", str(log), "--since", "18h")
    assert code == 0
    assert "0 probable sources" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nobody", "LOG"), "no such request"),
        (("shared id", "LOG"), "--tenant: initech, umbrella"),
        (("sink", "-"), "standard input can be read only once"),
        (("sink", "missing.log"), "cannot be read"),
        (("sink",), "give the key file of the workers with --key-file"),
    ],
)
def test_what_cannot_be_traced_says_why(
    log: Path, capsys: Capture, arguments: tuple[str, ...], message: str
) -> None:
    given = [str(log) if word == "LOG" else word for word in arguments]
    code, out, err = call(capsys, "trace", *given)
    assert (code, out) == (2, "")
    assert message in err
    assert "next: " in err


def test_a_reach_is_a_duration(log: Path, capsys: Capture) -> None:
    code, _, err = call(capsys, "trace", "sink", str(log), "--since", "soon")
    assert code == 2
    assert 'a duration such as "90s"' in err


def test_one_of_several_with_an_id_is_chosen(log: Path, capsys: Capture) -> None:
    code, out, _ = call(
        capsys, "trace", "shared id", str(log), "--tenant", "umbrella", "-o", "json"
    )
    assert code == 0
    assert json.loads(out)["sink"]["tenant"] == "umbrella"


def _key(log: Path) -> str:
    path = log.with_name("key")
    new_secret(path)
    return str(path)
