"""JSON nested without end, wherever somebody else's JSON is decoded: it is unreadable, no more."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from detector.errors import RecordError
from ingest.band_records import decode
from ingest.http_publisher import refusal
from tests.content.tree import CODE, name, python_files
from tests.e2e.program import Capture, call
from tests.e2e.traffic import pairs, write_config, write_jsonl, write_sglang, write_vllm
from tests.unit.sidecars import Station
from tests.unit.test_signals import signals, vllm_json, vllm_line
from tests.unit.wire import RING

DEEP = "[" * 100_000 + "]" * 100_000

WRITERS = {"vllm": write_vllm, "sglang": write_sglang, "jsonl": write_jsonl}

LINES = {
    "a JSON line": f'{{"message": "x", "z": {DEEP}}}',
    "a JSON line of vLLM": vllm_json("Request r-1 aborted.")[:-1] + f', "z": {DEEP}}}',
    "the body of a request": vllm_line(f'Request r-1 JSON body: {{"z": {DEEP}}}', "logger.py:64"),
    "a finished request": f'{{"event": "request.finished", "z": {DEEP}}}',
    "nothing but brackets": DEEP,
}


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("line", LINES)
def test_a_deep_line_costs_no_other(tmp_path: Path, capsys: Capture, form: str, line: str) -> None:
    config = write_config(tmp_path / "config.yaml", detection={"commonness": {"learning_ms": 0}})
    log = WRITERS[form](tmp_path / "server.log", pairs(2))
    log.write_bytes(log.read_bytes() + LINES[line].encode() + b"\n")
    options = ("--format", form, "--config", config, "-o", "json")
    code, out, err = call(capsys, "replay", log, *options)
    assert code == 1, err
    assert len(json.loads(out)["findings"]) == 2


@pytest.mark.parametrize("line", LINES)
def test_a_deep_line_ends_no_sidecar(tmp_path: Path, line: str) -> None:
    log = write_sglang(tmp_path / "server.log", pairs(2))
    expected = log.read_bytes()
    log.write_bytes(LINES[line].encode() + b"\n" + expected)
    sound = write_sglang(tmp_path / "sound.log", pairs(2))
    station = Station(tmp_path, str(log), format="sglang")
    station.start()
    station.turns(4)
    station.stop()
    assert len(set(station.told())) == len(station.expected(sound))
    assert signals().event(LINES[line].encode(), "engine", None, 0) is None


def test_a_deep_record_of_bands_is_refused() -> None:
    deep = b"\x91" * 100_000 + b"\xc0"
    head = b"\x96\xa7bands/1" + b"\xa80123abcd"
    for value in (deep, head + deep, b"\x96" + deep, b"\x9f\xa7bands/1" + deep):
        with pytest.raises(RecordError) as raised:
            decode(value, ring=RING, partition=0, ranges=8)
        assert raised.value.reason == "malformed"


def test_a_deep_answer_of_a_receiver_is_a_refusal() -> None:
    error = refusal(400, f'{{"detail": {DEEP}}}'.encode(), "http://monitor:9466")
    assert str(error).startswith("http://monitor:9466: the receiver answers 400 (check")


@pytest.mark.parametrize("line", [f'{{"ids": {DEEP}}}', f'{{"z": {DEEP}}}', DEEP])
def test_a_deep_allow_list_is_an_error_with_its_line(
    tmp_path: Path, capsys: Capture, line: str
) -> None:
    allowed = tmp_path / "allowed.jsonl"
    allowed.write_text(line + "\n")
    log = write_jsonl(tmp_path / "log.jsonl", pairs(1))
    option = f"detection.filter.allow_lists=[{allowed}]"
    code, _, err = call(capsys, "replay", log, "--set", option)
    assert (code, f"{allowed}:1" in err) == (2, True)


DECODING = {"DecodeError", "MsgspecError", "JSONDecodeError"}
"""Who catches one of these decodes what somebody else wrote."""

FLAT = {"ingest/sources/literals.py"}
"""Decodes lists of numbers and nothing else: what is nested is a wrong type at once."""


def _handlers(path: Path) -> Iterator[tuple[int, set[str]]]:
    """Yield every try that catches what a decoder raises, with all that it catches."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Try):
            caught = {
                inner.attr if isinstance(inner, ast.Attribute) else inner.id
                for handler in node.handlers
                if handler.type is not None
                for inner in ast.walk(handler.type)
                if isinstance(inner, ast.Attribute | ast.Name)
            }
            if caught & DECODING:
                yield node.lineno, caught


def test_whoever_decodes_catches_what_is_nested_too_deeply() -> None:
    missing = [
        f"{name(path)}:{line}"
        for path in python_files(*CODE)
        if name(path) not in FLAT
        for line, caught in _handlers(path)
        if "RecursionError" not in caught
    ]
    assert not missing
