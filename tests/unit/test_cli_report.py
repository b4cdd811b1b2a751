"""The findings table, the summary, saved findings and the exit code of a replay."""

import json
import os
import stat
from pathlib import Path

import msgspec
import pytest
import yaml
from rich.cells import cell_len

from detector.cli.finding_file import read_findings
from detector.cli.options import FailOn
from detector.cli.output import Format
from detector.cli.report import check_judged, check_savable, exit_code, save_findings, show_report
from detector.errors import InputError
from detector.finding import Finding, Party, Severity
from ingest.coverage import Coverage
from ingest.sources.base import Loss, RawRequest
from tests.unit.findings import SOURCE, Replayed, finding

NASTY = Party(
    tenant="a\x1b[31mb\u202e[bold]c",
    request_id="非常に長い要求の識別子" * 6,
    kind="response",
    started_at_ms=1_000,
    ended_at_ms=2_000,
)


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_table_at_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    show_report(Replayed([finding()]), Format.TABLE)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "SEVERITY", "CONFIDENCE", "RULE", "POOL", "SINK", "SOURCE", "TOKENS",
    ]  # fmt: skip
    assert lines[1].split() == [
        "high", "high", "BW001", "pool-a", "globex", "acme", "31",
    ]  # fmt: skip
    assert lines[2].startswith("  3f9a1c2b4d5e  The response to globex request req-77 repeats")
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize("columns", ["1", "40", "60", "80", "200"])
def test_long_and_hostile_names_fit_and_steer_nothing(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    show_report(Replayed([finding(sink=NASTY)] * 3), Format.TABLE)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "[bold]" in out.replace("\n", "").replace(" ", "") or int(columns) < 80
    assert max(map(cell_len, out.splitlines())) <= max(int(columns), 72)


def test_no_findings_is_an_empty_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    show_report(Replayed(), Format.TABLE)
    streams = capsys.readouterr()
    assert streams.out == ""
    assert "no findings in 5,928 requests" in streams.err


def test_json_lines_are_findings_that_can_be_read_back(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    findings = [finding(), finding("b" * 32, sink=NASTY)]
    show_report(Replayed(findings), Format.JSONL)
    out = capsys.readouterr().out
    assert out.isascii()
    file = tmp_path / "f.jsonl"
    file.write_text(out)
    assert list(read_findings(str(file))) == findings


def test_json_holds_findings_and_coverage(capsys: pytest.CaptureFixture[str]) -> None:
    coverage = Coverage("vllm")
    coverage.read(RawRequest(request_id="r", started_at_ms=0, prompt_loss=Loss.TRUNCATED))
    coverage.broken("cut", 7)
    show_report(Replayed([finding()], coverage), Format.JSON)
    document = json.loads(capsys.readouterr().out)
    assert msgspec.convert(document["findings"], list[Finding]) == [finding()]
    assert document["coverage"]["losses"][0]["loss"] == "truncated"
    assert document["coverage"]["broken_samples"] == [{"line": 7, "reason": "cut"}]


def test_yaml_holds_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    coverage = Coverage("vllm")
    coverage.read(RawRequest(request_id="r", started_at_ms=0, prompt_loss=Loss.TRUNCATED))
    documents = []
    for form in (Format.JSON, Format.YAML):
        show_report(Replayed([finding(sink=NASTY)], coverage), form)
        documents.append(yaml.safe_load(capsys.readouterr().out))
    assert documents[0] == documents[1]


def test_what_was_not_judged_is_told_with_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    coverage = Coverage("sglang")
    coverage.read(RawRequest(request_id="r", started_at_ms=0, response_loss=Loss.TRUNCATED))
    coverage.broken("cut", 7)
    coverage.ignored("health_check")
    coverage.unmapped()
    show_report(Replayed((), coverage, learning=True), Format.TABLE)
    told = capsys.readouterr().err
    assert "not judged: 1 response (truncated): raise --log-requests-level to 3" in told
    assert "not judged: 1 request (without a tenant): add a rule" in told
    assert "skipped: 1 broken entry (cut, first at line 7)" in told
    assert "left out: 1 entry (health check)" in told
    assert "learning: " in told


def test_saved_findings_are_private_and_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.jsonl"
    show_report(Replayed([finding()]), Format.TABLE, saved_as=str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["f.jsonl"]
    assert f"explain 3f9a1c2b4d5e --from {file}" in capsys.readouterr().err


def test_a_save_that_fails_is_told_after_the_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "no" / "f")
    with pytest.raises(FileNotFoundError) as caught:
        show_report(Replayed([finding()]), Format.TABLE, saved_as=file)
    assert caught.value.filename == file
    told = capsys.readouterr()
    assert "3f9a1c2b4d5e" in told.out
    assert "--from findings.jsonl" in told.err


def test_what_cannot_be_saved_is_known_before_the_search(tmp_path: Path) -> None:
    for file, error in ((tmp_path, IsADirectoryError), (tmp_path / "no" / "f", FileNotFoundError)):
        with pytest.raises(error):
            check_savable(str(file))
    check_savable(str(tmp_path / "f"))
    check_savable("/dev/null")
    assert list(tmp_path.iterdir()) == []


def test_saving_writes_through_links_and_into_pipes(tmp_path: Path) -> None:
    real, link, pipe = tmp_path / "real", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(real)
    save_findings([finding()], str(link))
    assert link.is_symlink()
    assert real.read_text().count("\n") == 1
    os.mkfifo(pipe)
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), encoding="ascii") as reader:
        save_findings([finding()], str(pipe))
        assert reader.read() == real.read_text()
    assert pipe.is_fifo()


def test_a_failed_save_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(IsADirectoryError):
        save_findings([finding()], str(folder))
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("severity", list(Severity))
def test_fail_on(severity: Severity) -> None:
    findings = [finding(severity=severity, source=SOURCE)]
    for floor in Severity:
        assert exit_code(findings, FailOn(floor.value)) == (severity.rank >= floor.rank)
    assert exit_code(findings, FailOn.NEVER) == 0
    assert exit_code([], FailOn.INFO) == 0


def test_fail_on_names_every_severity() -> None:
    assert [floor.value for floor in FailOn] == [*(s.value for s in Severity), "never"]


def test_what_time_and_memory_cost_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    costs = Replayed((), late=3, clock_jumps=2, evicted_sequences=1, history_skipped=4)
    show_report(costs, Format.TABLE)
    told = capsys.readouterr().err
    assert "late: 3 records" in told
    assert "clock: 2 records" in told
    assert "not judged: 1 prompt or response (left the window early): " in told
    assert "history: not learned: 4 prompts and responses (no earlier than the " in told


def test_what_the_history_lost_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    history = Coverage()
    history.unmapped()
    show_report(Replayed((), history=history), Format.TABLE)
    assert "history: not judged: 1 request (without a tenant)" in capsys.readouterr().err


def test_no_findings_are_no_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    show_report(Replayed((), requests=0), Format.JSONL)
    told = capsys.readouterr()
    assert told.out == ""
    assert "no findings in 0 requests" in told.err


MIXED = [
    finding("a" * 32, severity=Severity.INFO, observed_at_ms=1),
    finding("b" * 32, severity=Severity.HIGH, observed_at_ms=4),
    finding("c" * 32, severity=Severity.MEDIUM, observed_at_ms=2),
    finding("d" * 32, severity=Severity.HIGH, observed_at_ms=3),
]


def test_the_gravest_findings_come_first_in_the_table_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_report(Replayed(MIXED), Format.TABLE)
    out, told = capsys.readouterr()
    shown = [line[2] for line in out.splitlines() if "  The response" in line]
    assert shown == ["d", "b", "c", "a"]
    assert told.startswith("4 findings (2 high, 1 medium, 1 info) in 5,928 requests ")
    assert f"explain {'d' * 12} --from" in told
    show_report(Replayed(MIXED), Format.JSONL)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["id"][0] for one in lines] == ["a", "b", "c", "d"]
    for form in (Format.JSON, Format.YAML):
        show_report(Replayed(MIXED), form)
        document = yaml.safe_load(capsys.readouterr().out)
        assert [one["id"][0] for one in document["findings"]] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(("columns", "sink"), [("99", "globex"), ("100", "globex/req-77")])
def test_requests_are_in_the_table_where_there_is_room(
    columns: str, sink: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    show_report(Replayed([finding()]), Format.TABLE)
    assert capsys.readouterr().out.splitlines()[1].split()[4] == sink


def test_one_is_not_many(capsys: pytest.CaptureFixture[str]) -> None:
    show_report(Replayed([finding()], requests=1, tokens=1), Format.TABLE)
    assert capsys.readouterr().err.startswith(
        "1 finding (1 high) in 1 request (1 token, 2.0 s CPU)"
    )


@pytest.mark.parametrize(("tokens", "told"), [(999_999, False), (1_000_000, True)])
def test_speed_is_told_of_enough_tokens(
    tokens: int, told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    show_report(Replayed(tokens=tokens), Format.TABLE)
    assert ("tokens/s" in capsys.readouterr().err) == told


@pytest.mark.parametrize(
    ("requests", "said"),
    [(0, "no request was found"), (1, "1 request was read"), (5, "5 requests were read")],
)
def test_nothing_judged_is_an_error(requests: int, said: str) -> None:
    check_judged(Replayed(requests=5, responses=1))
    with pytest.raises(InputError, match=f"nothing was judged: {said}") as caught:
        check_judged(Replayed(requests=requests, responses=0))
    assert "--format" in caught.value.hint
