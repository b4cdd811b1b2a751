"""`explain`: the steps of a finding, looking an id up, and files that are no findings."""

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from detector.cli.app import app
from detector.cli.explain_steps import when
from detector.cli.finding_file import find
from detector.cli.report import save_findings
from detector.errors import InputError, UsageError
from detector.finding import Evidence, Finding, Party, Thresholds
from detector.match.reasons import Reason
from detector.match.sentences import SENTENCES
from tests.unit.findings import finding

LEARNING = Thresholds(low=10, medium=12, high=24, density_ratio=12.0, learning=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return saved(tmp_path, [finding(), finding("3f9a1c2b" + "0" * 24), finding("c" * 32)])


def saved(folder: Path, findings: Sequence[Finding]) -> Path:
    path = folder / "findings.jsonl"
    save_findings(findings, str(path))
    return path


def explained(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["explain", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def with_evidence(whole: Finding, evidence: Evidence) -> Finding:
    return msgspec.structs.replace(whole, evidence=evidence)


def test_steps(file: Path) -> None:
    text = " ".join(explained("3f9a1c2b4d", "--from", str(file)).split())
    for said in (
        "1. Who received it (sink) tenant globex, request req-77: its response, 1,000 tokens",
        "2. Whose content it is (source) tenant acme, request req-12: its prompt",
        "at 2027-01-15T08:00:00.000Z it started",
        "from 2027-01-15T08:01:00.000Z to",
        "it started 60.0 s before the sink's request, in KV pool pool-a",
        "3. What is the same 40 tokens in 1 run of at least 10",
        "6 shingles (own prompt): the receiver had just sent these words itself",
        "31 tokens are left that nothing explains",
        "31 unexplained tokens against low 10, medium 12, high 16: confidence high",
        "containment 4.0%",
        "rarity 97.0%",
    ):
        assert said in text


def test_density_learning_and_ties_are_explained(tmp_path: Path) -> None:
    others = tuple(
        Party(tenant="t", request_id=f"r{n}", kind="prompt", started_at_ms=n, ended_at_ms=n)
        for n in range(7)
    )
    file = saved(tmp_path, [finding(thresholds=LEARNING, others=others)])
    text = " ".join(explained("3f9a1c", "--from", str(file)).split())
    assert "the pool was 12 times as busy as the reference" in text
    assert "confidence is capped at low" in text
    assert "tenant t, request r0 (prompt, +0.000 s)" in text
    assert "and 2 more" in text


def test_an_edited_copy_is_explained_by_its_similarity(tmp_path: Path) -> None:
    whole = finding()
    evidence = msgspec.structs.replace(
        whole.evidence, runs=(), similarity=0.625, matched_tokens=820, unexplained_tokens=820
    )
    text = " ".join(
        explained(
            "3f9a1c", "--from", str(saved(tmp_path, [with_evidence(whole, evidence)]))
        ).split()
    )
    for said in (
        "820 tokens in common bigrams; no run of 10 is left unexplained",
        "similarity 62.5%: the share of all bigrams (two neighbouring tokens)",
        "an edited copy: without a run it is medium at most",
        "containment 4.0%",
    ):
        assert said in text
    assert "rarity" not in text


def test_machine_forms_are_the_record(file: Path) -> None:
    record = json.loads(explained("c" * 32, "--from", str(file), "-o", "json"))
    assert msgspec.convert(record, Finding) == finding("c" * 32)


def test_every_reason_has_a_sentence() -> None:
    assert set(SENTENCES) == {reason.value for reason in Reason}


def test_the_whole_id_wins_over_a_beginning(tmp_path: Path) -> None:
    file = saved(tmp_path, [finding("abcdef12"), finding("abcdef")])
    assert find("ABCDEF ", str(file)).id == "abcdef"


@pytest.mark.parametrize(
    ("identifier", "said"),
    [
        ("3f9a1c2b", "2 findings start with `3f9a1c2b`"),
        ("3f9a1", "at least 6 characters"),
        ("3f9a1c2c", "no finding `3f9a1c2c` among 3"),
    ],
)
def test_ids_that_mean_no_one_finding(file: Path, identifier: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        find(identifier, str(file))


def test_an_unknown_id_names_near_ones(file: Path) -> None:
    with pytest.raises(UsageError) as caught:
        find("3f9a1c2b4d5f", str(file))
    assert "3f9a1c2b4d5e6f708192a3b4c5d6e7f8" in caught.value.hint


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"id": 3}', b"\xff\xfe", b"[" * 100_000, b"null", b'"x"']
)
def test_a_broken_file_names_the_line(file: Path, line: bytes) -> None:
    with file.open("ab") as stream:
        stream.write(b"\n" + line + b"\n")
    with pytest.raises(InputError) as caught:
        find("zzzzzz", str(file))
    assert caught.value.where == f"{file}:5"


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (1_800_000_000_123, "2027-01-15T08:00:00.123Z"),
        (-1_500, "-1.500 s"),
        (10**17, f"{10**17} ms"),
    ],
)
def test_times(at_ms: int, text: str) -> None:
    assert when(at_ms) == text
