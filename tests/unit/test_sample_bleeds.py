"""Planted bleeds: the truth rows are true, and the data set holds what they speak of."""

import io
import itertools
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import zstandard

from detector.errors import UsageError
from detector.model import Kind, Role
from detector.sample.bleeds import BleedSpec, Planted, Planter, plant
from detector.sample.chatml import messages_of
from detector.sample.dataset import REPEAT_TENANTS, REPEAT_VICTIMS, write_dataset
from detector.sample.language import Ids, Language, load_language
from detector.sample.sharing import Sharing
from detector.sample.tokenizer import IM_END
from detector.sample.traffic import SampleRequest, Traffic, TrafficSettings, generate
from detector.sample.truth import FULL, BleedKind, TruthRow

SPECS = (
    BleedSpec(kind=BleedKind.FULL_RESPONSE),
    BleedSpec(kind=BleedKind.FULL_PROMPT, role=Role.USER),
    BleedSpec(kind=BleedKind.MID_INSERT, length=128),
    BleedSpec(kind=BleedKind.NOISY_MID, length=64),
    BleedSpec(kind=BleedKind.MID_OVERWRITE, role=Role.USER, length=32),
    BleedSpec(kind=BleedKind.START, role=Role.SYSTEM, length=24),
    BleedSpec(kind=BleedKind.MID_INSERT, length=10),
)
SMALL = TrafficSettings(requests=1500, duration_s=1500.0, history_requests=200)


@pytest.fixture(scope="module")
def language() -> Language:
    return load_language()


@pytest.fixture(scope="module")
def traffic(language: Language) -> Traffic:
    return generate(Random(5), language, TrafficSettings())


@pytest.fixture(scope="module")
def sharing(traffic: Traffic) -> Sharing:
    return Sharing((*traffic.history, *traffic.requests))


@pytest.fixture(scope="module")
def planted(traffic: Traffic, sharing: Sharing) -> Planted:
    return plant(Random(6), traffic, sharing, SPECS)


def test_one_row_per_spec(planted: Planted) -> None:
    assert [row.kind for row in planted.truth] == [spec.kind for spec in SPECS]
    assert [row.length for row in planted.truth] == [spec.length or FULL for spec in SPECS]
    assert [row.leak_id for row in planted.truth] == list(range(len(SPECS)))


def test_every_row_is_true(planted: Planted) -> None:
    check_truth(planted.truth, planted.requests)


def test_planted_content_is_nobody_elses(traffic: Traffic, planted: Planted) -> None:
    owners: dict[Ids, set[str]] = defaultdict(set)
    for request in (*traffic.history, *traffic.requests):
        for ids in (request.prompt_ids, request.response_ids):
            for start in range(len(ids) - 9):
                owners[ids[start : start + 10]].add(request.tenant)
    clean = {request.request_id: request for request in traffic.requests}
    for row in planted.truth:
        source = clean[row.source_request_id]
        for start in range(row.source_start, row.source_end - 9):
            run = _field(source, row.source_field)[start : start + 10]
            assert owners[run] == {row.source_tenant}
            assert len(set(run)) >= 6


def test_only_victims_and_their_later_turns_change(traffic: Traffic, planted: Planted) -> None:
    victims = {row.victim_request_id for row in planted.truth}
    sessions = {one.session for one in traffic.requests if one.request_id in victims}
    for before, after in zip(traffic.requests, planted.requests, strict=True):
        assert before.request_id == after.request_id
        if before.request_id not in victims:
            assert before.response_ids == after.response_ids
        if before.request_id in planted.changed:
            assert before.session in sessions
        else:
            assert before == after


def test_a_later_turn_sends_the_bled_answer_again(planted: Planted) -> None:
    by_session: dict[str, list[SampleRequest]] = defaultdict(list)
    for request in planted.requests:
        by_session[request.session].append(request)
    for requests in by_session.values():
        for first, second in itertools.pairwise(requests):
            answer = tuple(number for number in first.response_ids if number != IM_END)
            assert answer in {message.ids for message in messages_of(second.prompt_ids)}


def test_sources_and_victims_are_all_different(planted: Planted) -> None:
    victims = [row.victim_request_id for row in planted.truth]
    sources = [row.source_request_id for row in planted.truth]
    assert len({*victims, *sources}) == 2 * len(planted.truth)


def test_repeat_hits_many_tenants_soon(traffic: Traffic, sharing: Sharing) -> None:
    planter = Planter(Random(7), traffic, sharing)
    planter.plant_repeat(length=48, victims=8)
    repeated = planter.result()
    check_truth(repeated.truth, repeated.requests)
    assert len(repeated.truth) == 8
    (chunk,) = {(row.source_tenant, row.source_start, row.source_end) for row in repeated.truth}
    times = [
        one.ts
        for one in repeated.requests
        for row in repeated.truth
        if one.request_id == row.victim_request_id
    ]
    assert chunk[2] - chunk[1] == 48
    assert max(times) - min(times) <= 240
    assert {row.source_role for row in repeated.truth} == {Role.SYSTEM}


def test_no_room_is_an_error(traffic: Traffic, sharing: Sharing) -> None:
    spec = BleedSpec(kind=BleedKind.MID_INSERT, length=5000)
    with pytest.raises(UsageError, match="no request can receive"):
        plant(Random(1), traffic, sharing, [spec])
    with pytest.raises(UsageError, match="no system prompt"):
        Planter(Random(1), traffic, sharing).plant_repeat(length=48, victims=5000)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory, language: Language) -> Path:
    directory = tmp_path_factory.mktemp("sample") / "set"
    start = time.process_time()
    write_dataset(1, directory, language=language, settings=SMALL, per_length=4)
    assert time.process_time() - start < 15.0
    return directory


def test_dataset_files(dataset: Path) -> None:
    clean, planted = _rows(dataset / "requests.jsonl.zst"), _rows(dataset / "planted.jsonl.zst")
    history = _rows(dataset / "history.jsonl.zst")
    manifest = json.loads((dataset / "manifest.json").read_text())
    assert len(clean) == len(planted) == manifest["requests"] == SMALL.requests
    assert len(history) == manifest["history_requests"]
    fields = "request_id ts tenant model prompt_ids response_ids"
    assert list(history[0]) == fields.split()
    assert clean[0]["prompt_len"] == len(clean[0]["prompt_ids"])
    assert clean[0]["response_len"] == len(clean[0]["response_ids"])


def test_dataset_truth(dataset: Path) -> None:
    planted = {row["request_id"]: row for row in _rows(dataset / "planted.jsonl.zst")}
    truth = [json.loads(line) for line in (dataset / "truth.jsonl").read_text().splitlines()]
    lengths = Counter(row["L"] for row in truth)
    assert set(lengths) == {10, 12, 16, 24, 32, 48, 64, 128, 256, "full"}
    assert min(lengths.values()) >= 4
    for row in truth:
        if not row["noise_offsets"]:
            _check_json_row(row, planted)


def test_dataset_overlay(dataset: Path) -> None:
    rows = {row["request_id"]: row for row in _rows(dataset / "requests.jsonl.zst")}
    overlay = _rows(dataset / "planted_repeat_overlay.jsonl.zst")
    rows |= {row["request_id"]: row for row in overlay}
    lines = (dataset / "truth_repeat.jsonl").read_text().splitlines()
    assert len(lines) == REPEAT_TENANTS * REPEAT_VICTIMS <= len(overlay)
    for line in lines:
        _check_json_row(json.loads(line), rows)


def test_dataset_is_the_same_for_a_seed(dataset: Path, tmp_path: Path, language: Language) -> None:
    write_dataset(1, tmp_path, language=language, settings=SMALL, per_length=4)
    for path in dataset.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def check_truth(truth: Iterable[TruthRow], requests: Iterable[SampleRequest]) -> None:
    by_id = {request.request_id: request for request in requests}
    for row in truth:
        victim, source = by_id[row.victim_request_id], by_id[row.source_request_id]
        assert (victim.tenant, source.tenant) == (row.victim_tenant, row.source_tenant)
        assert row.victim_tenant != row.source_tenant
        assert victim.node == source.node == row.node
        assert 0 < victim.ts - source.ts <= 300
        assert row.dt_s == pytest.approx(victim.ts - source.ts, abs=0.001)
        taken = _field(source, row.source_field)[row.source_start : row.source_end]
        found = victim.response_ids[row.victim_start : row.victim_end]
        different = [place for place in range(len(taken)) if taken[place] != found[place]]
        assert len(taken) == len(found) == row.run_tokens
        assert tuple(different) == row.noise_offsets
        assert (row.kind is BleedKind.NOISY_MID) == bool(row.noise_offsets)


def _check_json_row(row: dict[str, Any], requests: dict[str, dict[str, Any]]) -> None:
    victim, source = requests[row["victim_request_id"]], requests[row["source_request_id"]]
    taken = source[f"{row['source_field']}_ids"][row["source_start"] : row["source_end"]]
    assert victim["response_ids"][row["victim_start"] : row["victim_end"]] == taken
    assert victim["node"] == source["node"] == row["node"]


def _field(request: SampleRequest, kind: Kind) -> Ids:
    return request.prompt_ids if kind is Kind.PROMPT else request.response_ids


def _rows(path: Path) -> list[dict[str, Any]]:
    with zstandard.open(path, "rb") as file:
        return [json.loads(line) for line in io.TextIOWrapper(file, encoding="utf-8")]
