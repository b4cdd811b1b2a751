"""The checklist: its answers rest on evidence, and change when a fault is introduced."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from detector.check.checklist import QUESTIONS
from detector.probe.record import Record, write_record
from tests.check.corpus_files import MODELS
from tests.e2e.program import Capture, call
from tests.unit.engine_server import engine_server

POOL, CLEAN, APART, VERSIONS, MONITORED, TESTED = (question for question, _ in QUESTIONS)

SOUND = {
    "flags": "--max-total-tokens 40k --max-running-requests 4 --admin-api-key K --host 0.0.0.0",
    "version": "0.5.23",
}
VOUCHED = ("salts", "request-ids", "text-only", "tap")
PASSED = [{"verdict": "pass", "check": "boundary", "engine": "e", "found": "refused"}]
FAILED = [*PASSED, {"verdict": "fail", "check": "canary", "engine": "e", "found": "a canary came"}]


def ask(capsys: Capture, *more: str, flags: str, version: str) -> tuple[int, str]:
    """Return the exit code and the page."""
    stated = [word for name in VOUCHED for word in ("--vouch", name)]
    code, out, err = call(
        capsys, "checklist", "--engine", "sglang", "--args", flags, "--version", version,
        "--model-config", MODELS / "small.json", "--mean-tokens", "4000", *stated, *more,
    )  # fmt: skip
    assert code in (0, 1), err
    return code, out


def answers(page: str) -> dict[str, str]:
    return dict(re.findall(r"^\| (.+\?) \| \*\*(.+)\*\* \|$", page, re.M))


def probe_file(folder: Path, rows: list[dict[str, str]]) -> str:
    file = folder / "probe.json"
    record = Record(
        url="http://127.0.0.1:1",
        started_at_ms=1,
        ended_at_ms=2,
        passed=True,
        requests=9,
        skipped=[],
        configurations=[],
        checks=rows,
    )
    write_record(record, str(file))
    return str(file)


def test_all_answers_are_yes_where_all_is_shown(capsys: Capture, tmp_path: Path) -> None:
    with engine_server(readyz="{}") as worker:
        code, page = ask(
            capsys, "--monitor", worker.url, "--probe", probe_file(tmp_path, PASSED), **SOUND
        )
    assert set(answers(page).values()) == {"yes"}
    assert code == 0


@pytest.mark.parametrize(
    ("question", "answer", "change"),
    [
        (POOL, "no", {"flags": SOUND["flags"].replace("40k", "16k")}),
        (CLEAN, "partly", {"flags": SOUND["flags"] + " --disaggregation-mode decode"}),
        (CLEAN, "no", {"flags": SOUND["flags"] + " --disaggregation-mode decode",
                       "version": "0.5.18"}),
        (APART, "no", {"flags": SOUND["flags"] + " --enable-lmcache"}),
        (APART, "partly", {"flags": SOUND["flags"].replace("--admin-api-key K", "")}),
        (VERSIONS, "no", {"flags": SOUND["flags"] + " --disaggregation-mode prefill",
                          "version": "0.5.18"}),
        (VERSIONS, "not known", {"version": "nightly"}),
        (MONITORED, "not known", {"flags": SOUND["flags"] + " $MORE_FLAGS"}),
    ],
)  # fmt: skip
def test_a_fault_changes_the_answer(
    capsys: Capture, tmp_path: Path, question: str, answer: str, change: dict[str, str]
) -> None:
    with engine_server(readyz="{}") as worker:
        given = ("--monitor", worker.url, "--probe", probe_file(tmp_path, PASSED))
        before = answers(ask(capsys, *given, **SOUND)[1])
        code, page = ask(capsys, *given, **(SOUND | change))
    assert (before[question], answers(page)[question]) == ("yes", answer)
    assert code == ("no" in answers(page).values())


def test_without_monitor_and_probe_nothing_is_claimed(capsys: Capture) -> None:
    code, page = ask(capsys, **SOUND)
    assert answers(page)[MONITORED] == answers(page)[TESTED] == "not known"
    assert "Next: run \\`bleedwatch probe --record FILE\\` in the build" in page
    assert code == 0


def test_a_monitor_that_is_not_ready_and_a_failed_probe(capsys: Capture, tmp_path: Path) -> None:
    with engine_server() as worker:
        code, page = ask(
            capsys, "--monitor", worker.url, "--probe", probe_file(tmp_path, FAILED), **SOUND
        )
    assert answers(page)[MONITORED] == answers(page)[TESTED] == "no"
    assert "the answer has status 404" in page.lower()
    assert "a canary came" in page
    assert code == 1


def test_the_page_shows_the_same_answers_and_no_markup_of_others(
    capsys: Capture, tmp_path: Path
) -> None:
    rows = [{**FAILED[1], "found": "<script>alert(1)</script>"}]
    code, page = ask(capsys, "-o", "html", "--probe", probe_file(tmp_path, rows), **SOUND)
    tags: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, _: object) -> None:
            tags.append(tag)

    Tags().feed(page)
    assert code == 1
    assert "script" not in tags
    assert tags.count("h2") == len(QUESTIONS)
    assert '<p class="no"><strong>No.</strong></p>' in page


@pytest.mark.parametrize("content", ["", "{}", "[]", "[1]", '[{"check": "a"}]', "\x00"])
def test_what_is_no_result_of_a_probe(capsys: Capture, tmp_path: Path, content: str) -> None:
    file = tmp_path / "probe.json"
    file.write_text(content)
    code, out, err = call(capsys, "checklist", "--args", "vllm serve m", "--probe", file)
    assert (code, out) == (2, "")
    assert "no result of a probe" in err


def test_what_is_no_monitor(capsys: Capture) -> None:
    code, _, err = call(capsys, "checklist", "--args", "vllm serve m", "--monitor", "worker")
    assert (code, "no address of a process" in err) == (2, True)
