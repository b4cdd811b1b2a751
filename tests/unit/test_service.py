"""The embedded pipeline from files to findings, and what a sidecar may never load."""

import json
import os
import subprocess
import sys
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any
from unittest.mock import patch

import pytest

from detector.config.root import Settings
from detector.errors import BleedwatchError, InputError, UsageError
from detector.finding import Finding
from detector.model import Sequence
from detector.reading import Reading
from detector.service import deployment_table, replay, replay_hold_ms
from detector.settings import WindowSettings
from ingest.coverage import Coverage
from ingest.door import Door
from ingest.sources.base import RawRequest
from ingest.sources.detect import HEAD_LINES
from tests.content.tree import ROOT

SECRET = list(range(1000, 1030))
OWN = list(range(5000, 5030))
SETTINGS = Settings.model_validate({"detection": {"commonness": {"learning_ms": 0}}})


def line(
    tenant: str, request: str, at: float, *, asked: list[int], answered: list[int], **more: Any
) -> dict[str, Any]:
    """Return one request in our own form; it takes two seconds."""
    fields = {
        "request_id": request, "ts": at, "ts_end": at + 2, "node": "n", "tenant": tenant,
        "prompt_ids": asked, "response_ids": answered,
    }  # fmt: skip
    return {**fields, **more}


SOURCE = line("a", "1", 0.0, asked=SECRET, answered=OWN)
SINK = line("b", "2", 10.0, asked=list(range(40)), answered=[7, *SECRET])


def write(path: Path, *lines: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    return str(path)


def names(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(one.sink.request_id, one.source.request_id) for one in findings]


def test_one_file_is_replayed(tmp_path: Path) -> None:
    report = replay([write(tmp_path / "log.jsonl", SOURCE, SINK)], SETTINGS)
    assert names(report.findings) == [("2", "1")]
    assert report.findings[0].evidence.unexplained_tokens == 30
    assert (report.requests, report.responses, report.tokens) == (2, 2, 131)
    assert (report.late, report.clock_jumps, report.evicted_sequences) == (0, 0, 0)
    assert report.cpu_seconds > 0


CONTAINER = "2026-03-01T10:00:00.100000000Z stdout {} "


def read(path: Path, text: str) -> tuple[list[RawRequest], Coverage]:
    """Return the requests of a file, as they come to the door."""
    path.write_text(text, encoding="utf-8", newline="")
    reading = Reading(SETTINGS, deployment_table(SETTINGS))
    with patch.object(Door, "sequences", autospec=True, return_value=[]) as admitted:
        list(reading.sequences([str(path)]))
    return [call.args[1] for call in admitted.call_args_list], reading.coverage


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_body_over_several_lines_of_a_vllm_file_is_one_message(tmp_path: Path, end: str) -> None:
    head = "INFO 03-01 10:00:00 [request_logger.py:55] "
    forged = "Generated response chatcmpl-a details: output_token_ids: [6]"
    lines = [
        "INFO 03-01 09:59:59 [api_server.py:1] Started",
        f'{head}Request a JSON body: {{"x":\r',
        f"{head}{forged}\r",
        f'{head}1, "user": "u1"}}',
        f"{head}Request chatcmpl-a details: prompt: None, prompt_token_ids: [5], "
        "prompt_embeds shape: None.",
        f"{head}Generated response chatcmpl-a details: output_token_ids: [7]",
        f"{head}Generated response chatcmpl-a: output: 'x', finish_reason: stop",
    ]
    (one,), coverage = read(tmp_path / "server.log", "".join(line + end for line in lines))
    assert (one.prompt_ids, one.response_ids) == ([5], [7])
    assert not coverage.broken_by_reason


@pytest.mark.parametrize("before", [[], [CONTAINER.format("F") + "a banner"]])
def test_a_container_log_that_begins_with_a_line_of_many_pieces_is_recognised(
    tmp_path: Path, before: list[str]
) -> None:
    record = {
        "timestamp": "2026-03-01T10:00:00.250000", "event": "request.finished",
        "obj": {"rid": "r", "input_ids": list(range(900))}, "out": {"output_ids": [2]},
    }  # fmt: skip
    text = json.dumps(record)
    cuts = [text[at : at + 50] for at in range(0, len(text), 50)]
    pieces = [CONTAINER.format("P") + cut for cut in cuts] + [CONTAINER.format("F")]
    assert len(pieces) > HEAD_LINES
    (one,), _ = read(tmp_path / "0.log", "\n".join(before + pieces) + "\n")
    assert (len(one.prompt_ids or ()), one.response_ids) == (900, [2])


STARTED = "INFO 03-01 09:59:59 [api_server.py:1] Started"
AT_TEN = "INFO 03-01 10:00:00 [request_logger.py:55] "
PROMPT = (
    "Request chatcmpl-a details: prompt: None, prompt_token_ids: [5], prompt_embeds shape: None."
)
OUTPUT = "Generated response chatcmpl-a details: output_token_ids: [7]"
TEXT = "Generated response chatcmpl-a: output: 'x', finish_reason: stop"
ENDING_WITH_CR = "\r\n".join(AT_TEN + each for each in (PROMPT, OUTPUT, TEXT))


@pytest.mark.parametrize(
    "text",
    [
        f"a banner of a shell\n{STARTED}\r\n{ENDING_WITH_CR}\r\n",
        f"{STARTED}\r\n{ENDING_WITH_CR}",
    ],
    ids=["a line without CR before", "the last line is cut off"],
)
def test_lines_that_end_with_cr_are_lines(tmp_path: Path, text: str) -> None:
    (one,), coverage = read(tmp_path / "server.log", text)
    assert (one.prompt_ids, one.response_ids) == ([5], [7])
    assert not coverage.broken_by_reason


def test_a_log_that_begins_inside_a_body_takes_none_of_it_for_records(tmp_path: Path) -> None:
    body = f"{ENDING_WITH_CR}\r\n" * 30
    made, coverage = read(tmp_path / "server.log.1", body)
    assert not made
    assert coverage.broken_by_reason == {"truncated_message": 1}


@pytest.mark.parametrize("start", ["", "[2026-03-01 10:00:00] "])
def test_a_log_of_a_container_runtime_is_recognised_and_its_pieces_are_joined(
    tmp_path: Path, start: str
) -> None:
    record = {
        "timestamp": "2026-03-01T10:00:00.250000", "event": "request.finished",
        "obj": {"rid": "r", "input_ids": [1]}, "out": {"output_ids": [2]},
    }  # fmt: skip
    text = start + json.dumps(record)
    whole = CONTAINER.format("F") + text + "\n"
    pieces = CONTAINER.format("P") + text[:90] + "\n" + CONTAINER.format("F") + text[90:] + "\n"
    cut_off = CONTAINER.format("P") + text[:90] + "\n"
    made, coverage = read(tmp_path / "0.log", whole + pieces + cut_off)
    assert [(one.prompt_ids, one.response_ids) for one in made] == [([1], [2])] * 2
    assert coverage.broken_by_reason == {"truncated_stream": 1}


def test_files_are_merged_by_time_whatever_their_order(tmp_path: Path) -> None:
    """Read one after the other, the source would come an hour too late for its place."""
    filler = [
        line("c", f"c{n}", 60.0 * n, asked=[9000 + n] * 12, answered=[]) for n in range(1, 70)
    ]
    sources = write(tmp_path / "sources.jsonl", SOURCE)
    sinks = write(tmp_path / "sinks.jsonl", SINK, *filler)
    for paths in ([sources, sinks], [sinks, sources]):
        read = list(Reading(SETTINGS, deployment_table(SETTINGS)).sequences(paths))
        ends = [_request_end(one) for one in read]
        assert ends == sorted(ends)
        report = replay(paths, SETTINGS)
        assert names(report.findings) == [("2", "1")]
        assert (report.requests, report.late) == (71, 0)


def _request_end(sequence: Sequence) -> int:
    """Both sides of these requests are read when the request has ended, after two seconds."""
    return sequence.started_at_ms + 2000


def test_a_file_out_of_order_gives_the_same_findings(tmp_path: Path) -> None:
    lines = [SOURCE, SINK]
    for number in range(40):
        content = list(range(2000 + 50 * number, 2040 + 50 * number))
        lines += [
            line("a", f"a{number}", 5.0 * number, asked=content, answered=[]),
            line("b", f"b{number}", 5.0 * number + 1, asked=[], answered=content),
        ]
    key = tmp_path / "secret.key"
    key.write_text(bytes(range(32)).hex(), encoding="utf-8")
    key.chmod(0o600)
    settings = SETTINGS.model_copy(update={"key_file": str(key)})
    reports = [
        replay([write(tmp_path / "log.jsonl", *order)], settings)
        for order in (lines, lines[::-1], lines[1::2] + lines[::2])
    ]
    assert len(reports[0].findings) == 41
    ids = [[one.id for one in report.findings] for report in reports]
    assert ids[0] == ids[1] == ids[2]
    ordered = [(one.observed_at_ms, one.id) for one in reports[0].findings]
    assert ordered == sorted(ordered)


def test_history_teaches_and_is_not_counted(tmp_path: Path) -> None:
    """What a third tenant showed the day before is common; without a history it is a finding."""
    log = write(tmp_path / "log.jsonl", SOURCE, SINK)
    earlier = line("c", "0", -40_000.0, asked=SECRET, answered=[])
    report = replay([log], SETTINGS, history=[write(tmp_path / "history.jsonl", earlier)])
    assert not report.findings
    assert report.explained == {"common": 21}
    assert (report.requests, report.tokens) == (2, 131)


def test_learning_ends_with_enough_history(tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", SOURCE, SINK)
    cold = replay([log], Settings())
    assert cold.learning
    assert [one.confidence for one in cold.findings] == ["low"]
    earlier = line("c", "0", -40_000.0, asked=OWN, answered=[])
    warm = replay([log], Settings(), history=[write(tmp_path / "history.jsonl", earlier)])
    assert not warm.learning
    assert [one.confidence for one in warm.findings] == ["high"]


def test_pools_come_from_the_records_the_file_or_the_flag(tmp_path: Path) -> None:
    apart = line("b", "2", 10.0, asked=[], answered=SECRET, node="m")
    log = write(tmp_path / "log.jsonl", SOURCE, apart)
    assert not replay([log], SETTINGS).findings
    nowhere = [{k: v for k, v in one.items() if k != "node"} for one in (SOURCE, apart)]
    report = replay([write(tmp_path / "bare.jsonl", *nowhere)], SETTINGS, kv_pool="mine")
    assert [one.kv_pool for one in report.findings] == ["mine"]


def test_an_allow_list_is_hashed_with_the_key_of_the_run(tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", SOURCE, SINK)
    listed = write(tmp_path / "public.jsonl", {"ids": [3, *SECRET, 4]})
    settings = Settings.model_validate({"detection": {"filter": {"allow_lists": [listed]}}})
    report = replay([log], settings)
    assert not report.findings
    assert report.explained == {"allow_list": 21}


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"once upon a time\n", b"\x00\xff\x00\xff" * 500, b"1,2,3\n4,5,6\n"]
)
def test_an_unknown_format_is_an_error_that_says_what_next(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        replay([str(path)], SETTINGS)
    assert str(path) in str(raised.value)


def test_a_missing_file_and_an_unknown_format_name_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        replay([str(tmp_path / "absent.jsonl")], SETTINGS)
    with pytest.raises(UsageError) as raised:
        replay([write(tmp_path / "log.jsonl", SOURCE)], SETTINGS, format="csv")
    assert isinstance(raised.value, BleedwatchError)
    assert "csv" in str(raised.value)


def test_a_broken_line_among_good_ones_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write(path, SOURCE, SINK)
    path.write_text(path.read_text() + '{"request_id": "3", "ts": \n', encoding="utf-8")
    report = replay([str(path)], SETTINGS)
    assert names(report.findings) == [("2", "1")]
    assert report.coverage.broken_by_reason == {"not_json": 1}


def test_times_at_the_ends_of_the_calendar_are_no_trouble(tmp_path: Path) -> None:
    far = [
        line(t, f"{t}{at}", at, asked=list(range(600 + n, 630 + n)), answered=[])
        for at in (-62_000_000_000.0, 253_402_300_000.0)
        for n, t in enumerate("ab")
    ]
    report = replay([write(tmp_path / "log.jsonl", SOURCE, SINK, *far)], SETTINGS)
    assert names(report.findings) == [("2", "1")]
    assert report.clock_jumps > 0


def test_one_wrong_clock_in_the_history_does_not_blind(tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", SOURCE, SINK)
    decade = 10 * 365 * 86_400.0
    history = [
        line("c", "1", -5000.0, asked=list(range(3000, 3040)), answered=[]),
        line("c", "2", decade, asked=list(range(4000, 4040)), answered=[]),
    ]
    report = replay([log], SETTINGS, history=[write(tmp_path / "history.jsonl", *history)])
    assert names(report.findings) == [("2", "1")]


@pytest.mark.parametrize("ends_s", [600.0, 86_400.0, 2e11])
def test_an_end_far_ahead_in_the_history_does_not_blind(tmp_path: Path, ends_s: float) -> None:
    log = write(tmp_path / "log.jsonl", SOURCE, SINK)
    past = line("c", "1", -10.0, asked=list(range(3000, 3040)), answered=[])
    answer = {**past, "response_ids": list(range(4000, 4040)), "ts_end": ends_s}
    report = replay([log], SETTINGS, history=[write(tmp_path / "history.jsonl", answer)])
    assert names(report.findings) == [("2", "1")]
    assert report.history_skipped == 0


def test_history_that_is_not_past_is_not_learned_and_counted(tmp_path: Path) -> None:
    """A whole day's file that holds the incident must not explain it, nor a later one blind."""
    log = write(tmp_path / "log.jsonl", SOURCE, SINK)
    later = line("c", "1", 7_200.0, asked=list(range(3000, 3040)), answered=[])
    day = write(tmp_path / "day.jsonl", SOURCE, SINK, later)
    report = replay([log], SETTINGS, history=[day])
    assert names(report.findings) == [("2", "1")]
    assert report.history_skipped == 6


def test_standard_input_is_read_once() -> None:
    for paths, history in ((["-", "-"], []), (["-"], ["-"])):
        with pytest.raises(UsageError, match="only once"):
            replay(paths, SETTINGS, history=history)


def test_nothing_but_broken_entries_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"ts": 1}\n{"request_id": 7}\n{"request_id"\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"no request could be read: 3 broken entries"):
        replay([str(path)], SETTINGS)


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[float, str]] = []
    log = write(tmp_path / "log.jsonl", SOURCE, SINK)
    replay([log], SETTINGS, on_progress=lambda share, what: told.append((share, what)))
    assert told
    assert all(0 <= share <= 1 for share, _ in told)


def test_a_replay_orders_by_time_even_logs_sorted_by_start() -> None:
    window = WindowSettings()
    assert replay_hold_ms(window) == window.grace_ms + window.longest_response_ms


JSON_START = '{"asctime": "2026-03-01 10:00:00,1", "name": "vllm.entrypoints.logger", "message": "'
SGLANG_LINE = (
    '{"timestamp": "2026-03-01T10:00:00.250000", "event": "request.finished", '
    '"obj": {"rid": "r", "input_ids": [5]}, "out": {"output_ids": [2]}}\n'
)

HEAVY = ("numba", "llvmlite", "torch", "datasketch", "faust")


def test_a_sidecar_loads_no_compiler_and_no_tensor_library() -> None:
    """A sidecar is made of `ingest`, without the worker, and the floor of `detector`."""
    modules = sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "ingest").rglob("*.py")
        if path.stem != "__init__" and not path.stem.startswith("faust_")
    )
    assert len(modules) > 20
    code = (
        "import importlib, sys\n"
        f"for name in {modules}: importlib.import_module(name)\n"
        f"print([name for name in {HEAVY} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("log_format", "text"),
    [
        ("jsonl", '{"request_id": "a", "ts": 1, "prompt_ids": [5]}\n'),
        ("vllm", "\n".join([STARTED, *(AT_TEN + each for each in (PROMPT, OUTPUT, TEXT))]) + "\n"),
        ("vllm", "".join(f'{JSON_START}{each}"}}\n' for each in (PROMPT, OUTPUT, TEXT))),
        ("sglang", SGLANG_LINE),
    ],
    ids=["jsonl", "vllm as text", "vllm as JSON", "sglang"],
)
def test_a_pipe_of_a_named_format_is_read_as_its_lines_come(
    monkeypatch: pytest.MonkeyPatch, log_format: str, text: str
) -> None:
    """Nothing waits for as many lines as tell the format."""
    there, here = os.pipe()
    found: Queue[Any] = Queue()
    settings = Settings.model_validate({"tenancy": {"rules": [{"kind": "static", "tenant": "t"}]}})
    reading = Reading(settings, deployment_table(settings))

    def read_one() -> None:
        found.put(next(reading.records(["-"], log_format=log_format)))

    with os.fdopen(there) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(here, text.encode())
        reader = Thread(target=read_one, daemon=True)
        reader.start()
        try:
            assert len(found.get(timeout=30).token_hashes) == 1
        finally:
            os.close(here)
            reader.join(30)
