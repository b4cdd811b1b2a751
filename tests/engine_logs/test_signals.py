"""Signals on genuine engine logs: every event that they hold, counted independently, no more."""

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from detector.config.root import Settings
from detector.signals import signals_of
from ingest.schema_records import EngineEvent

FOLDERS = ("vllm", "sglang")

Key = tuple[str, str | None]

EXPECTED: dict[str, dict[Key, int]] = {
    "vllm/a-debug-text/server.log.zst": {
        # 16 streams and 5 requests whose clients left, and one that was aborted by its id
        ("aborted", None): 22,
        ("clear_failed", "blocks_in_use"): 1,
        ("rejected", "over_long"): 4,
        ("rejected", "over_long_at_least"): 9,
        ("rejected", "max_tokens"): 1,
        ("rejected", "invalid_request"): 2,
        ("rejected", "bad_request"): 1,
        ("rejected", "http_400"): 16,
    },
    "vllm/c-json-dictconfig/runC_json_server.log": {("aborted", None): 8},
    "vllm/e-fault-leak/runE_leak_server.log.zst": {
        ("aborted", None): 12,
        ("clear_failed", "blocks_in_use"): 1,
        ("rejected", "http_400"): 6,
    },
    "sglang/a-level3-json/server.log.zst": {("aborted", None): 1, ("rejected", "http_400"): 23},
    "sglang/a-level3-json/reqlog/vm_0.log.zst": {("aborted", None): 1},
    "sglang/a-level3-json/server.log.stderr": {
        ("aborted", "disconnected"): 2,
        ("clear_failed", "requests_pending"): 1,
        ("rejected", "over_context"): 1,
        ("rejected", "total_over_context"): 3,
    },
    "sglang/c-fault-leak/server.log.zst": {("rejected", "http_400"): 7},
    "sglang/c-fault-leak/server.log.stderr": {
        ("leak_detected", "kv_pool"): 121,
        ("rejected", "total_over_context"): 1,
    },
}
"""What each log holds; logs that are not named hold no event."""

WORDS: dict[Key, bytes] = {
    ("clear_failed", "blocks_in_use"): b"are not freed yet",
    ("rejected", "over_long"): rb"called with VLLMValidationError: This.*contains \d+ input",
    ("rejected", "over_long_at_least"): b"called with VLLMValidationError: This.*at least",
    ("rejected", "max_tokens"): b"called with VLLMValidationError: max_tokens=",
    ("rejected", "http_400"): rb'"POST /(?:v1/[a-z/]*completions|generate) HTTP/1.1" 400',
    ("rejected", "over_context"): b"Error: The input",
    ("rejected", "total_over_context"): b"Error: Requested token count exceeds",
    ("aborted", "disconnected"): b"Error: Request is disconnected",
    ("clear_failed", "requests_pending"): b"Cache not flushed because",
    ("leak_detected", "kv_pool"): b"pool memory leak detected!",
}
"""Words to count the lines of an event by, without our patterns."""


def root() -> Path:
    return Path(os.environ["BLEEDWATCH_EVAL_DATA"]) / "engine-logs"


def lines(name: str) -> list[bytes]:
    done = subprocess.run(["zstd", "-dcf", str(root() / name)], capture_output=True, check=True)
    return done.stdout.split(b"\n")


def logs() -> list[str]:
    found = [path for folder in FOLDERS for path in (root() / folder).rglob("*") if path.is_file()]
    kinds = (".log", ".log.zst", ".stderr")
    return sorted(str(path.relative_to(root())) for path in found if path.name.endswith(kinds))


def events(name: str) -> list[EngineEvent]:
    look = signals_of(Settings())("e0", None)
    return [event for line in lines(name) if (event := look(line)) is not None]


def test_all_logs_are_looked_at() -> None:
    assert set(EXPECTED) < set(logs())


@pytest.mark.parametrize("name", logs())
def test_a_log_has_its_events_and_no_other(name: str) -> None:
    counted = Counter((str(one.kind), one.detail) for one in events(name))
    assert dict(counted) == EXPECTED.get(name, {})
    content = lines(name)
    for key, words in WORDS.items():
        assert sum(re.search(words, line) is not None for line in content) == counted[key]


def test_lengths_and_limits_are_those_of_the_probes() -> None:
    seen = Counter(
        (one.detail, one.prompt_tokens, one.limit_tokens)
        for name in EXPECTED
        for one in events(name)
        if one.limit_tokens is not None
    )
    assert seen == {
        ("over_long", 560, 512): 4,
        ("over_long_at_least", 513, 512): 9,
        ("max_tokens", None, 512): 1,
        ("over_context", 560, 512): 1,
        ("total_over_context", 163, 512): 1,
        ("total_over_context", 130, 512): 1,
        ("total_over_context", 8, 512): 2,
    }


def test_requests_that_were_aborted_are_those_that_were_logged() -> None:
    name = "vllm/a-debug-text/server.log.zst"
    said = re.findall(rb"\] Request (\S+) aborted\.", b"\n".join(lines(name)))
    ours = {one.request_id for one in events(name) if one.kind == "aborted"}
    assert ours == {one.decode() for one in said} | {"cmpl-probe-long-1"}
    (long_one,) = [one for one in events("sglang/a-level3-json/server.log.zst") if one.request_id]
    assert long_one.request_id == "probe-long-1"
