"""The development set through lines, reader and door: complete, spans as published, fast enough."""

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from detector.model import Kind, Role, Sequence
from detector.sketch.token_table import Secret, TokenTable
from ingest.chat_template import ChatTemplate, ChatTemplateSettings
from ingest.coverage import Coverage
from ingest.door import Door
from ingest.sources.detect import LogFormat, detect_format
from ingest.sources.jsonl import JsonlLog
from ingest.sources.lines import open_lines
from ingest.tenancy import Tenancy, TenancySettings

REQUESTS, PROMPT_TOKENS, RESPONSE_TOKENS = 5928, 1_740_000, 1_650_000
"""Published with the set; the token numbers are rounded to 10,000."""

MIN_TOKENS_PER_SECOND = 1_000_000
"""Floor for reading, hashing and detection together: reading alone must be well above it."""


@pytest.fixture
def dev(recorded_traffic: Path) -> Path:
    """Return the folder of the development set."""
    return recorded_traffic / "dev"


def _sequences(path: Path, coverage: Coverage) -> Iterator[Sequence]:
    table = TokenTable(Secret(bytes(range(32))).keys().hash_key)
    template = ChatTemplate(ChatTemplateSettings())
    door = Door(table, Tenancy(TenancySettings()), template, coverage)
    with open_lines(path, coverage=coverage) as lines:
        assert detect_format(lines.head(3)) is LogFormat.JSONL
        for request in JsonlLog(lines, engine=None, coverage=coverage):
            yield from door.sequences(request)
        assert lines.bytes_read == lines.total_bytes == path.stat().st_size


def test_every_request_arrives_and_is_fast(dev: Path) -> None:
    coverage = Coverage()
    begin = time.process_time()
    tokens = {Kind.PROMPT: 0, Kind.RESPONSE: 0}
    for sequence in _sequences(dev / "requests.jsonl.zst", coverage):
        tokens[sequence.kind] += len(sequence.token_hashes)
    seconds = time.process_time() - begin
    assert coverage.requests == coverage.prompts.complete == REQUESTS
    assert not coverage.broken_by_reason
    assert coverage.unmapped_tenants == 0
    assert abs(tokens[Kind.PROMPT] - PROMPT_TOKENS) < 10_000
    assert abs(tokens[Kind.RESPONSE] - RESPONSE_TOKENS) < 10_000
    assert sum(tokens.values()) / seconds > MIN_TOKENS_PER_SECOND


def test_history_without_node_and_end_arrives(dev: Path) -> None:
    coverage = Coverage()
    pools = {s.kv_pool for s in _sequences(dev / "history.jsonl.zst", coverage)}
    assert pools == {"unknown"}
    assert coverage.requests == 8282
    assert not coverage.broken_by_reason


def test_spans_agree_with_the_published_ones(dev: Path) -> None:
    published: dict[str, list[tuple[str, int, int]]] = {}
    with open_lines(dev / "meta.jsonl.zst", coverage=Coverage()) as lines:
        for _, line in lines:
            meta = msgspec.json.decode(line)
            published[meta["request_id"]] = [tuple(span) for span in meta["spans"]]
    wrong = 0
    for sequence in _sequences(dev / "requests.jsonl.zst", Coverage()):
        if sequence.kind is Kind.PROMPT:
            found = [(s.role.value, s.start, s.end) for s in sequence.spans if s.role != "template"]
            wrong += found != published[sequence.request_id]
            covered = sum(span.end - span.start for span in sequence.spans)
            assert covered == len(sequence.token_hashes)
            assert sequence.spans[-1].role is Role.TEMPLATE
    assert wrong == 0
