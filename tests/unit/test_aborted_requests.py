"""Only a finished record of SGLang's request log whose reason is an abort tells of an abort."""

import json
from typing import Any

import pytest

from ingest.signals.finished import read_aborted

REASON = {"type": "abort", "message": "the client went away"}


def line(event: str = "request.finished", reason: Any = REASON, **more: Any) -> bytes:
    record = {
        "timestamp": "2026-11-29T18:00:21",
        "event": event,
        "rid": "r-1",
        "obj": {"rid": "r-1", "input_ids": [1, 2, 3]},
        "out": {"meta_info": {"id": "r-1", "finish_reason": reason}},
    }
    return json.dumps({**record, **more}).encode()


def test_an_abort_says_who_when_and_why() -> None:
    aborted = read_aborted(line())
    assert aborted is not None
    assert (aborted.request_id, aborted.reason) == ("r-1", REASON["message"])
    assert aborted.at_ms > 0


@pytest.mark.parametrize(
    "other",
    [
        line(reason={"type": "stop", "matched": None}),
        line(reason=None),
        line(event="request.received"),
        line(event="request.other"),
        line(out=None, note=json.dumps(REASON)),
        line(out={"text": '{"type": "abort"', "meta_info": {"finish_reason": {"type": "stop"}}}),
        line(out=[{"type": "abort"}]),
        line()[:-20],
        b"Finish: obj=GenerateReqInput(rid='r-1'), out={'type': 'abort'",
        b"{'type': 'abort'}",
        b"",
    ],
)
def test_another_line_tells_of_none(other: bytes) -> None:
    assert read_aborted(other) is None


def test_a_reason_without_a_message_has_no_words() -> None:
    aborted = read_aborted(line(reason={"type": "abort", "message": None}))
    assert aborted is not None
    assert aborted.reason == ""
