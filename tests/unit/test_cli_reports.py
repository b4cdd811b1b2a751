"""Findings without text in the table and in `explain`: what is not there is a dash, not a zero."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from detector.cli.app import app
from detector.cli.findings_table import show_findings
from detector.cli.report import save_findings
from detector.finding import Finding
from detector.rules.catalog import RULES
from detector.rules.runtime import EngineRules
from detector.runtime.settings import RuntimeSettings
from detector.settings import WindowSettings
from detector.streaming.runtime_watch import RuntimeWatch
from ingest.schema_records import EventKind
from tests.unit.runtime_records import answered, event, sample, sent


def about_an_engine() -> Finding:
    rules = EngineRules(RuntimeSettings(), kv_pool="p", engine="prefill-0")
    small = {"pool_tokens": 681_280, "context_tokens": 1_048_576}
    (found,) = [
        *rules.sample(sample(0, **small)).findings,
        *rules.sample(sample(5, **small)).findings,
    ]
    return found


def about_a_request() -> Finding:
    watch = RuntimeWatch(RuntimeSettings(), WindowSettings())
    rejection = event(EventKind.REJECTED, 10, request_id="r", prompt_tokens=700_000)
    watch.event(rejection, is_news=True)
    (found,) = watch.parts([answered("r", 10, 40, status=200)], is_news=True)
    return found


def about_two_requests() -> Finding:
    watch = RuntimeWatch(RuntimeSettings(), WindowSettings())
    (found,) = watch.parts([sent("r", 0, 9), sent("r", 5, 9, tenant="C")], is_news=True)
    return found


def explained(finding: Finding, folder: Path) -> str:
    path = folder / "findings.jsonl"
    save_findings([finding], str(path))
    result = CliRunner().invoke(app, ["explain", finding.id, "--from", str(path)])
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def test_the_table_shows_no_tokens_where_no_text_was_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_findings([about_an_engine(), about_a_request()])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["medium", "high", "BW206", "p", "-", "-", "-"] in lines
    assert ["high", "high", "BW101", "p", "b/r", "b/r", "-"] in lines


def test_explain_says_what_an_engine_reported(tmp_path: Path) -> None:
    text = explained(about_an_engine(), tmp_path)
    for said in (
        "BW206 (KV pool smaller than the context), severity medium",
        "1. Which engine engine prefill-0 of KV pool p",
        "2. What it reported pool tokens: 681,280 context tokens: 1,048,576",
    ):
        assert said in text
    assert "unexplained" not in text


def test_explain_says_what_contradicts_itself(tmp_path: Path) -> None:
    text = explained(about_a_request(), tmp_path)
    for said in ("tenant b, request r: its response", "prompt tokens: 700,000", "status: 200"):
        assert said in text
    both = explained(about_two_requests(), tmp_path)
    assert "The other request with this id tenant b, request r: its prompt" in both
    assert "Request r of tenant C has the id" in both


def about_memory() -> list[Finding]:
    """Return findings of BW208 and BW105, about memory of tenant `acme`."""
    watch = RuntimeWatch(RuntimeSettings(), WindowSettings())
    label = {"tenant": "acme", "request_id": "r1", "created_at_ms": 5, "block": "b"}
    watch.event(event(EventKind.ALLOCATED, 1, **label), is_news=True)
    other = {"request_id": "r2", "tenant": "globex"}
    watch.event(event(EventKind.REUSED, 2, **(label | other)), is_news=True)
    crossing = {"tenant": "globex", "other_tenant": "acme", "detail": "salt_differs", "block": "c"}
    watch.event(event(EventKind.REUSED, 3, **crossing), is_news=True)
    return watch.idle()


def test_memory_of_another_is_told_with_its_owner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show_findings(about_memory())
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["high", "high", "BW208", "p", "globex/r2", "acme/r1", "-"] in lines
    assert ["high", "high", "BW105", "p", "globex", "acme", "-"] in lines
    ledger, isolation = (explained(one, tmp_path) for one in about_memory())
    assert "Whose memory tenant acme, request r1" in ledger
    assert "block: b" in ledger
    assert "this id" not in ledger
    assert "salt differs: 1 block: c" in isolation


def test_every_rule_that_can_be_found_has_a_title() -> None:
    made = (about_an_engine(), about_a_request(), about_two_requests())
    assert {one.rule for one in made} < RULES.keys()
