"""Format detection: by how lines begin, never by a word inside a prompt."""

import pytest

from detector.errors import InputError
from ingest.sources.detect import LogFormat, detect_format

VLLM = [
    b"(APIServer pid=24238) INFO 11-29 17:29:22 [entrypoints/.../utils/api_utils.py:347] ",
    b"INFO 11-29 17:29:56 [request_logger.py:65] Received request cmpl-1: params: x",
    b"\x1b[0;36m(APIServer pid=1)\x1b[0;0m DEBUG 11-29 17:29:56 [logger.py:40] Request c details:",
    b'{"asctime": "2026-11-29 17:34:20,880", "levelname": "DEBUG", "name": "vllm.entrypoints", ...',
    b"prefix WARNING 01-02 03:04:05 [core.py:1] text",
]
SGLANG = [
    b'[2026-11-29 18:06:01] {"timestamp": "2026-11-29T18:06:01.7", "event": "request.received"',
    b'{"timestamp": "2026-11-29T18:06:01.7", "event": "request.finished", "rid": "a"',
    b"[2026-11-29 18:06:01] Receive: obj=GenerateReqInput(rid='acme-0001', input_ids=[1]",
    b"[2026-11-29 18:06:01 DP0 TP0] max_total_num_tokens=1536",
    b'[2026-11-29 18:00:22] INFO:     127.0.0.1:57108 - "GET /health HTTP/1.1" 200 OK',
]
JSONL = [
    b'{"request_id":"req-1","ts":0.05,"prompt_ids":[1,2]}',
    b' { "id": 1 }',
    b"{}",
    b'{"message": "Receive: obj= [2026-11-29 18:06:01] INFO 11-29 17:29:56", "ts": 1}',
]


@pytest.mark.parametrize(
    ("line", "expected"),
    [(line, LogFormat.VLLM) for line in VLLM]
    + [(line, LogFormat.SGLANG) for line in SGLANG]
    + [(line, LogFormat.JSONL) for line in JSONL],
)
def test_one_line_is_enough(line: bytes, expected: LogFormat) -> None:
    assert detect_format([b"", b"a banner", line]) is expected


def test_an_engine_line_outweighs_json_objects() -> None:
    assert detect_format([*JSONL, SGLANG[3]]) is LogFormat.SGLANG
    assert detect_format([*VLLM, SGLANG[3]]) is LogFormat.VLLM


@pytest.mark.parametrize("lines", [[], [b""], [b"hello"], [b"\xff" * 999], [b"[1, 2]"]])
def test_an_unknown_format_names_the_flag(lines: list[bytes]) -> None:
    with pytest.raises(InputError, match=r"app.log: .*--format jsonl\|vllm\|sglang"):
        detect_format(lines, where="app.log")


@pytest.mark.parametrize(
    "lines", [[b"\x00\xff" * 999], ['{"request_id": "1"}\n'.encode("utf-16-le")]]
)
def test_zero_bytes_are_no_log_of_another_format(lines: list[bytes]) -> None:
    with pytest.raises(InputError, match=r"app\.log: is no text in UTF-8") as caught:
        detect_format(lines, where="app.log")
    assert "--format" not in caught.value.hint


def test_only_the_start_of_a_line_is_looked_at() -> None:
    with pytest.raises(InputError):
        detect_format([b"x" * 600 + VLLM[1]])


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (None, "is empty"),
        ("truncated_stream", "damaged or cut off"),
        ("line_too_long", "no line of less than 64 MiB"),
    ],
)
def test_a_log_without_lines_says_why(lost: str | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        detect_format([], lost=lost)
