"""Log lines made to keep a regular expression busy: each takes time with its length, no more."""

import re
import time

import pytest

from ingest.limits import MAX_COUNT
from ingest.safe_pattern import compile_safe
from ingest.schema import check
from ingest.signals.lines import MESSAGE_BYTES
from tests.unit.engine_messages import SGLANG, VLLM
from tests.unit.test_signals import sglang_line, signals, vllm_json, vllm_line

FORMS = (vllm_line, vllm_json, sglang_line)

MEGABYTE = 2**20

SECONDS = 1.0
"""For a line of a megabyte: JSON of that size takes 0.05 s to read, on a busy machine 0.2 s."""

FILLS = ("a", " ", "(", "'", "9", "] ", "\x1b[0m", "\u200b", "rid=", "a=b, ", "request ", "\\")

WORST = (
    r"(?P<request_id>\w*)\w*-",
    r"\w*\w*(?:-|=)",
    r"[^ ]*[^ ]*(?:-|=)x",
    r".{0,512}.{0,512}[-=]",
)
"""Patterns of an operator that are just accepted: two open repeats and a choice."""


@pytest.mark.parametrize("fill", FILLS)
def test_no_line_keeps_the_patterns_busy(fill: str) -> None:
    looked = signals()
    filling = fill * (MEGABYTE // len(fill))
    for text in {row.text for row in (*VLLM[::10], *SGLANG[::10])}:
        for cut in (len(text) // 2, len(text)):
            for form in FORMS:
                line = form(text[:cut] + filling).encode()
                began = time.process_time()
                looked.event(line, "engine", None, 0)
                assert time.process_time() - began < SECONDS


def test_numbers_without_end_are_no_event_that_cannot_be_sent() -> None:
    looked = signals()
    seen = 0
    for row in (*VLLM, *SGLANG):
        for form in FORMS:
            event = looked.event(
                form(re.sub(r"\d+", "9" * 900, row.text)).encode(), "engine", None, 0
            )
            if event is not None:
                check(event)
                seen += 1
                numbers = (event.prompt_tokens, event.limit_tokens)
                assert all(number is None or number <= MAX_COUNT for number in numbers)
    assert seen


@pytest.mark.parametrize("pattern", WORST)
@pytest.mark.parametrize("fill", ["a", "a ", "-"])
def test_the_worst_pattern_that_is_accepted_is_bounded(pattern: str, fill: str) -> None:
    compiled = compile_safe(pattern)
    text = (fill * MESSAGE_BYTES)[:MESSAGE_BYTES]
    began = time.process_time()
    compiled.match(text)
    assert time.process_time() - began < SECONDS
