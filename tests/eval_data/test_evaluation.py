"""The evaluation on the recorded hour stays above its floors, live, echoed and out of order."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from detector.batches import Batches
from detector.config.root import Settings
from detector.evaluate import ARRIVAL_HOLD_MS, evaluate
from detector.evaluation.outcome import Bleed, outcomes
from detector.finding import Finding
from detector.index.window import Sequencer
from detector.model import Kind
from detector.reading import Reading
from detector.service import deployment_table, detect, new_detector, replay, surest
from ingest.key_file import new_secret
from tests.reference.traffic import read_jsonl

REQUESTS = 5928
RAW_FLAGGED = 957

MAX_CLEAN = 25
MAX_CLEAN_HIGH = 1
MAX_DENSE_HIGH = 3

PLANTED = 300
PLANTED_LONG = 246
"""Planted bleeds of 16 tokens or more."""

REPEATED = 48
MIN_REPEATED = 46

REQUIRED = {
    "requests", "clean_findings", "clean_findings_high", "recall_all", "recall_16plus",
    "recall_16plus_high", "recall_repeat", "right_source", "raw_10gram_flagged",
    "tokens_per_second", "recall_by_length", "recall_by_kind", "clean_variants",
}  # fmt: skip

IM_START, IM_END = 151644, 151645
USER, ASSISTANT, NEWLINE = 872, 77091, 198

SLICE_S = 900.0
JITTER_S = 60.0

Row = dict[str, Any]


@pytest.fixture(scope="module")
def dev(recorded_traffic: Path) -> Path:
    return recorded_traffic / "dev"


@pytest.fixture(scope="module")
def measured(dev: Path) -> dict[str, Any]:
    return evaluate(str(dev), Settings())


def high_of(measured: dict[str, Any], variant: str) -> int:
    (row,) = [row for row in measured["clean_variants"] if row["variant"] == variant]
    return int(row["high"])


def test_the_document_has_every_figure(measured: dict[str, Any]) -> None:
    assert set(measured) >= REQUIRED
    assert not [name for name in REQUIRED if measured[name] is None]
    assert msgspec.json.decode(msgspec.json.encode(measured)) == measured


def test_clean_traffic_raises_few_findings(measured: dict[str, Any]) -> None:
    assert measured["requests"] == REQUESTS
    assert measured["raw_10gram_flagged"] == RAW_FLAGGED
    assert measured["clean_findings"] <= MAX_CLEAN
    assert measured["clean_findings_high"] <= MAX_CLEAN_HIGH


def test_planted_bleeds_are_found(measured: dict[str, Any]) -> None:
    assert measured["recall_all"] >= 0.95
    assert measured["recall_16plus"] >= 0.97
    assert measured["recall_16plus_high"] >= 0.93
    assert measured["recall_repeat"] >= MIN_REPEATED / REPEATED


def test_the_right_source_is_named(measured: dict[str, Any]) -> None:
    """Even if every wrong source stood at a long bleed, 97 % of those would have the right one."""
    wrong = (1 - measured["right_source"]) * measured["recall_all"] * PLANTED
    right = measured["recall_16plus"] * PLANTED_LONG - wrong
    assert right / PLANTED_LONG >= 0.97


def test_no_history_and_density_raise_few_sure_findings(measured: dict[str, Any]) -> None:
    assert high_of(measured, "with_history") == measured["clean_findings_high"]
    assert high_of(measured, "no_history") <= MAX_CLEAN_HIGH
    assert high_of(measured, "density_x12_compressed") <= MAX_DENSE_HIGH
    assert high_of(measured, "density_x12_folded") <= MAX_DENSE_HIGH


def test_a_repeated_bleed_is_found_though_chat_clients_echo_it(dev: Path, tmp_path: Path) -> None:
    truth = msgspec.json.Decoder(Bleed).decode_lines((dev / "truth_repeat.jsonl").read_bytes())
    rows, echoes = _echoed(dev, {bleed.victim_request_id for bleed in truth})
    assert echoes >= REPEATED - 2  # a victim near the end of the hour has no later request
    log = _written(tmp_path / "echoed.jsonl", rows)
    for findings in (_live(log, dev), _replayed(log, dev)):
        found = sum(result.found for result in outcomes(findings, truth))
        assert found >= MIN_REPEATED
    log.unlink()


def _echoed(dev: Path, victims: set[str]) -> tuple[list[Row], int]:
    """Return the hour with the overlay, every bled answer echoed, and the number of echoes.

    A tenant's first request after a bled answer has that answer as an earlier assistant turn.
    """
    changed = {
        row["request_id"]: row for row in read_jsonl(dev / "planted_repeat_overlay.jsonl.zst")
    }
    rows = [changed.get(row["request_id"], row) for row in read_jsonl(dev / "requests.jsonl.zst")]
    by_tenant: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["ts"]):
        by_tenant[row["tenant"]].append(row)
    echoes = 0
    for victim in [row for row in rows if row["request_id"] in victims]:
        later = (row for row in by_tenant[victim["tenant"]] if row["ts"] > victim["ts_end"])
        if (following := next(later, None)) is not None:
            _embed(following["prompt_ids"], victim["response_ids"])
            echoes += 1
    return rows, echoes


def _embed(prompt: list[int], answer: list[int]) -> None:
    """Put an assistant turn with `answer` before the last user turn of a ChatML prompt."""
    starts = [at for at, token in enumerate(prompt) if token == IM_START]
    at = [at for at in starts if prompt[at + 1] == USER][-1]
    ended = answer if answer[-1] == IM_END else [*answer, IM_END]
    prompt[at:at] = [IM_START, ASSISTANT, NEWLINE, *ended, NEWLINE]


def _live(log: Path, dev: Path) -> list[Finding]:
    """Return the findings of a stream in which every record arrives when its answer ends."""
    settings = Settings()
    table = deployment_table(settings)
    detector = new_detector(settings.detection, table)
    for sequence in Reading(settings, table).sequences([str(dev / "history.jsonl.zst")]):
        detector.warm(sequence)
    arriving = sorted(
        Reading(settings, table).sequences([str(log)]),
        key=lambda one: (one.ended_at_ms, one.kind is Kind.RESPONSE),
    )
    batches = Batches(settings.detection)
    sequencer = Sequencer(hold_ms=ARRIVAL_HOLD_MS)
    return surest(detect(detector, sequencer, arriving, batches=batches))


def _replayed(log: Path, dev: Path) -> list[Finding]:
    return replay([str(log)], Settings(), history=[str(dev / "history.jsonl.zst")]).findings


def test_shuffled_arrival_gives_the_same_findings(dev: Path, tmp_path: Path) -> None:
    rows = [row for row in read_jsonl(dev / "planted.jsonl.zst") if row["ts"] < SLICE_S]
    new_secret(tmp_path / "key")
    settings = Settings(key_file=str(tmp_path / "key"))
    random = Random(5)
    expected: set[tuple[str, str]] | None = None
    for jitter_s in (0.0, JITTER_S, JITTER_S):
        arrival = {row["request_id"]: row["ts_end"] + random.uniform(0, jitter_s) for row in rows}
        log = tmp_path / "arrival.jsonl"
        _written(log, sorted(rows, key=lambda row: arrival[row["request_id"]]))
        report = replay([str(log)], settings)
        log.unlink()
        told = {(finding.id, finding.confidence.value) for finding in report.findings}
        expected = told if expected is None else expected
        assert told == expected
        assert report.late == 0
    assert len(expected or ()) > 50


def _written(path: Path, rows: Iterable[Row]) -> Path:
    with path.open("wb") as file:
        for row in rows:
            file.write(msgspec.json.encode(row) + b"\n")
    return path
