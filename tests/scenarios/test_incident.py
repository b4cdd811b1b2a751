"""The public incident at its real size, from the logs of a simulated cluster to the look-back."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from detector.finding import Finding
from detector.sample.traffic import Traffic
from tests.e2e.program import Capture, call
from tests.fakes.cluster.sglang_log import EPOCH_S
from tests.fakes.cluster.simulation import KV_POOL
from tests.scenarios.chain import Seen
from tests.scenarios.incident import (
    DOCUMENT_TOKENS,
    IDLE_S,
    PREFILL_POOL,
    SCENARIO,
    incident_traffic,
)
from tests.scenarios.run import language, recorded, see_in

WITHIN_MS = 5_000
WINDOW_MS = 300_000
RUN = 20
"""Tokens in a row that two documents of this language do not have in common by chance."""


class Incident(NamedTuple):
    """What was asked, what the log of decode says, and what the program made of it."""

    folder: Path
    load: Traffic
    seen: Seen

    @property
    def told(self) -> dict[str, Finding]:
        """The findings about the answer that must not have been given, by rule."""
        (answered,) = {one.sink.request_id for one in self.seen.findings if one.rule == "BW101"}
        return {one.rule: one for one in self.seen.findings if one.sink.request_id == answered}


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Incident:
    folder = tmp_path_factory.mktemp("incident")
    load = incident_traffic(language())
    return Incident(folder, load, see_in(folder, recorded(SCENARIO, folder, load), load))


def test_the_deployment_is_told_of_before_anybody_asks(incident: Incident) -> None:
    opened_ms = round((EPOCH_S + IDLE_S) * 1000)
    early = [one for one in incident.seen.findings if one.detected_at_ms < opened_ms]
    assert {(one.rule, one.engine) for one in early} == {
        ("BW206", "prefill"),
        ("BW401", "prefill"),
        ("BW402", "prefill"),
        ("BW402", "decode"),
    }


def test_nothing_else_is_told_of_the_engines(incident: Incident) -> None:
    about_engines = {one for one in incident.seen.rules if one.startswith(("BW2", "BW4"))}
    assert about_engines == {"BW206", "BW401", "BW402"}


def test_the_answer_is_told_of_within_seconds(incident: Incident) -> None:
    told = incident.told
    assert set(told) == {"BW101", "BW102"}  # no text: who bled is long out of the window
    for one in told.values():
        assert one.detected_at_ms - one.sink.ended_at_ms <= WITHIN_MS
        assert (one.sink.prompt_tokens or 0) > PREFILL_POOL


def test_the_look_back_names_who_bled(incident: Incident, capsys: Capture) -> None:
    sink = incident.told["BW101"].sink
    code, out, err = call(
        capsys, "trace", sink.request_id, incident.folder / "decode.log", "--kv-pool", KV_POOL,
        "--config", incident.folder / "settings.json", "-o", "json",
    )  # fmt: skip
    assert code == 1, err
    named = [one["party"] for one in json.loads(out)["sources"]]
    bled = set(_bled(incident, sink.request_id))
    assert bled
    assert {one["request_id"] for one in named[: len(bled)]} == bled
    assert all(sink.started_at_ms - one["started_at_ms"] > WINDOW_MS for one in named[: len(bled)])


def _bled(incident: Incident, request_id: str) -> Iterator[str]:
    """Yield the requests whose documents the answer repeats, as what was asked and said tells."""
    answer = next(
        line["out"]["output_ids"]
        for line in _lines(incident.folder / "decode.log")
        if line["event"] == "request.finished" and line["rid"] == request_id
    )
    said = {tuple(answer[at : at + RUN]) for at in range(len(answer) - RUN + 1)}
    for asked in incident.load.requests:
        ids = asked.prompt_ids
        if len(ids) < DOCUMENT_TOKENS:
            continue
        if any(ids[at : at + RUN] in said for at in range(len(ids) - RUN + 1)):
            yield asked.request_id


def _lines(log: Path) -> Iterator[dict[str, Any]]:
    for line in log.read_text().splitlines():
        if "{" in line:
            yield json.loads(line[line.index("{") :])
