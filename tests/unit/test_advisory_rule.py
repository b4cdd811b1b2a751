"""BW402: an engine of a vulnerable version is told once, from its samples, before any traffic."""

from typing import Any

from detector.advisories.load import advisories, features
from detector.finding import Confidence, Finding, Severity
from detector.rules.advisory import MAX_TOLD, KnownAdvisories, VersionRule
from detector.runtime.settings import RuntimeSettings
from detector.settings import WindowSettings
from detector.streaming.runtime_watch import RuntimeWatch
from ingest.broker import Message
from ingest.record_batches import pack_clear
from ingest.schema_records import EngineRole, RuntimeSample
from tests.unit.runtime_records import sample
from tests.unit.streams import TOPICS, Stream

KNOWN = KnownAdvisories(advisories(), features())


def told(samples: list[RuntimeSample], rule: VersionRule | None = None) -> list[Finding]:
    rule = rule or VersionRule(KNOWN, kv_pool="p", engine="e")
    return [found for one in samples if (found := rule.sample(one)) is not None]


def scraped(version: str | None, *at_s: float, **more: Any) -> list[RuntimeSample]:
    return [sample(at, engine_version=version, **more) for at in at_s]


def test_a_version_is_told_once_when_two_scrapes_agree() -> None:
    assert told(scraped("0.5.18", 0)) == []
    assert told(scraped("0.5.18", 0, 0, 0)) == []  # the ranks of one scrape
    (finding,) = told(scraped("0.5.18", *range(0, 3_600, 15)))
    assert (finding.rule, finding.severity) == ("BW402", Severity.MEDIUM)
    assert "BWA-2026-0001" in finding.explanation
    assert "CVE-2026-112266" in finding.explanation
    assert not finding.is_content


def test_one_bad_scrape_is_not_believed() -> None:
    samples = [*scraped("0.5.23", 0, 15), *scraped("0.5.10", 30), *scraped("0.5.23", 45, 60)]
    findings = told(samples)
    assert len(findings) == 1
    assert "0.5.23" in findings[0].explanation


def test_each_version_is_told_once_however_often_it_comes_back() -> None:
    rule = VersionRule(KNOWN, kv_pool="p", engine="e")
    versions = ["0.5.18", "0.5.20", "0.5.18", "0.5.20"]
    samples = [
        one for turn, version in enumerate(versions) for one in scraped(version, turn, turn + 0.5)
    ]
    first = told(samples, rule)
    assert ["0.5.18" in one.explanation for one in first] == [True, False]
    assert told(samples) == first  # a restarted worker makes the same findings
    later = scraped("0.5.20", 9_000, 9_015)
    assert [one.id for one in told(later)] == [first[1].id]


def test_what_is_remembered_is_bounded() -> None:
    rule = VersionRule(KNOWN, kv_pool="p", engine="e")
    samples = [
        one
        for number in range(2 * MAX_TOLD)
        for one in scraped(f"0.4.{number}", number, number + 0.5)
    ]
    assert len(told(samples, rule)) == 2 * MAX_TOLD
    assert told(scraped("0.4.0", 900, 915), rule) != []


def test_the_role_decides_what_needs_prefill_and_decode_apart() -> None:
    (apart,) = told(scraped("0.5.18", 0, 15, role=EngineRole.DECODE))
    (whole,) = told(scraped("0.5.18", 0, 15, role=EngineRole.BOTH))
    assert "BWA-2026-0001" in apart.explanation
    assert "BWA-2026-0001" not in whole.explanation
    assert whole.confidence is Confidence.MEDIUM
    (sure,) = told(scraped("1.2.0", 0, 15, engine_kind="tensorrt-llm"))
    assert (sure.confidence, sure.runtime) == (
        Confidence.HIGH, {"applies": "1", "may_apply": "1"},
    )  # fmt: skip


def test_what_is_not_known_is_not_told() -> None:
    assert told(scraped(None, 0, 15)) == []
    assert told(scraped("main-1a2b3c", 0, 15)) == []
    assert told(scraped("1.0", 0, 15, engine_kind="another")) == []
    assert told(scraped("0.33.0", 0, 15, engine_kind="vllm")) == []


def test_a_pool_that_is_too_small_and_an_old_version_are_told_before_any_traffic() -> None:
    watch = RuntimeWatch(RuntimeSettings(), WindowSettings(), advisories=KNOWN)
    small = {"pool_tokens": 681_280, "context_tokens": 1_048_576, "role": EngineRole.PREFILL}
    findings = [
        found
        for one in scraped("0.5.19", 0, 15, 30, **small)
        for found in watch.sample(one, is_news=True)
    ]
    findings += watch.idle()
    assert sorted(one.rule for one in findings) == ["BW206", "BW402"]


def test_a_worker_compares_what_it_hears_with_the_advisories() -> None:
    stream = Stream()
    runner = stream.runner()
    runner.start()
    for at in (0, 15, 30, 45):
        batch = pack_clear(scraped("0.5.19", at))
        stream.send_raw(Message(TOPICS.runtime, batch, b"p"), at_ms=at * 1000)
        runner.turn()
    runner.finish()
    assert [one.rule for one in stream.findings()] == ["BW402"]
