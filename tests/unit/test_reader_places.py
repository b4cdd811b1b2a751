"""Readers say which lines a request was read from, and which line they still need."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ingest.coverage import Coverage
from ingest.sources.base import RawRequest, Source
from ingest.sources.jsonl import JsonlLog
from ingest.sources.sglang import SglangLog
from ingest.sources.vllm import VllmLog
from tests.e2e.traffic import WRITERS, pairs

READERS: dict[str, Callable[[], Source]] = {
    "jsonl": lambda: JsonlLog((), engine="e", coverage=Coverage()),
    "vllm": lambda: VllmLog((), engine="e", coverage=Coverage(), year=2026),
    "sglang": lambda: SglangLog((), engine="e", coverage=Coverage()),
}

PAIRS = 15


def key(request: RawRequest) -> tuple[str, tuple[int, ...], tuple[int, ...], dict[str, str]]:
    return (
        request.request_id,
        tuple(request.prompt_ids or ()),
        tuple(request.response_ids or ()),
        request.identity,
    )


def taken(reader: Source, lines: Iterable[tuple[int, bytes]]) -> list[RawRequest]:
    return [request for number, raw in lines for request in reader.take(number, raw)]


@pytest.mark.parametrize("log_format", READERS)
def test_reading_on_from_the_oldest_line_misses_nothing(tmp_path: Path, log_format: str) -> None:
    path = WRITERS[log_format](tmp_path / "log", pairs(PAIRS))
    lines = list(enumerate(path.read_bytes().splitlines(), start=1))
    whole = READERS[log_format]()
    expected = [key(one) for one in [*taken(whole, lines), *whole.end()]]
    for cut in range(1, len(lines)):
        reader = READERS[log_format]()
        before = taken(reader, lines[:cut])
        oldest = reader.oldest_line() or cut + 1
        again = READERS[log_format]()
        after = [*taken(again, lines[oldest - 1 :]), *again.end()]
        # what was cut by `oldest` was given before; what lies behind it is whole
        assert all(one.first_line <= one.last_line <= cut for one in before)
        rest = [key(one) for one in after if one.first_line > cut or key(one) in expected]
        assert {str(one) for one in [*map(key, before), *rest]} == {str(one) for one in expected}
        halves = [one for one in after if key(one) not in expected]
        sent = {one.request_id: one.last_line for one in before if one.first_line < oldest}
        assert all(one.first_line <= sent[one.request_id] for one in halves)


def test_a_body_is_part_of_its_request() -> None:
    log = VllmLog((), engine="e", coverage=Coverage(), year=2026)
    head = b"(APIServer pid=1) DEBUG 11-29 18:00:21 [request_logger.py:88] "
    assert not taken(log, [(7, head + b'Request abc JSON body: {"user": "acme"}')])
    assert log.oldest_line() == 7
    lines = [
        (8, head + b"Request chatcmpl-abc details: prompt: 'x', prompt_token_ids: [1, 2]"),
        (9, head + b"Generated response chatcmpl-abc details: output_token_ids: [3]"),
        (10, head + b"Generated response chatcmpl-abc: output: 'y', finish_reason: stop"),
    ]
    (one,) = taken(log, lines)
    assert (one.first_line, one.last_line, one.end_user) == (7, 10, "acme")
    assert log.oldest_line() is None


def test_a_message_that_goes_on_is_still_needed() -> None:
    log = VllmLog((), engine="e", coverage=Coverage(), year=2026)
    head = b"DEBUG 11-29 18:00:21 [request_logger.py:88] "
    assert not taken(log, [(3, head + b"Request abc details: prompt: 'x\r"), (4, b"INFO: other")])
    assert log.oldest_line() == 3
