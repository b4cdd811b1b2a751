"""KV events that genuine engines published: both encodings, and no tenant accused falsely."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from detector.model import Kind
from detector.sketch.token_table import Secret, TokenTable
from ingest.coverage import Coverage
from ingest.kv_events.feed import KvEventFeed, KvRecord
from ingest.kv_events.frames import Frame
from ingest.kv_events.settings import KvEventSettings, KvEventSource
from ingest.kv_events.tags import BlockTags
from ingest.schema_records import EngineEvent, EventKind, SequenceRecord
from ingest.schema_sequence import from_record
from ingest.sources.sglang import SglangLog
from ingest.tenancy import FieldRule, StaticRule, Tenancy, TenancySettings

RUNS = {
    "vllm/a-debug-text/kv_events.jsonl.zst": 458,
    "vllm/e-fault-leak/kv_events.jsonl": 202,
    "vllm/h-session-reuse-events/kv_events.jsonl": 5,
    "sglang/a-level3-json/kv_events.jsonl.zst": 212,
}
KEYS = Secret(bytes(range(32))).keys()
TABLE = TokenTable(KEYS.hash_key, key_id=KEYS.key_id)
SALTS = (
    FieldRule(name="session_id", pattern="tenant:(?P<tenant>[a-z]+)"),
    FieldRule(name="cache_salt", pattern="salt-(?P<tenant>[a-z]+)"),
)
ARRAY = ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium")


def recorded(name: str) -> list[dict[str, Any]]:
    path = Path(os.environ["BLEEDWATCH_EVAL_DATA"]) / "engine-logs" / name
    data = subprocess.run(["zstd", "-dcf", str(path)], capture_output=True, check=True).stdout
    return [json.loads(line) for line in data.splitlines()]


def as_array(event: dict[str, Any]) -> list[Any]:
    """Return an event as older releases encode it."""
    values = [event.get(name) for name in ARRAY if name in event or event["type"] != "BlockRemoved"]
    if event["type"] == "BlockStored" and "extra_keys" in event:
        values += [event["lora_name"], event["extra_keys"]]
    return [event["type"], *(values if event["type"] != "AllBlocksCleared" else [])]


class Recorded:
    """The messages of a run, encoded as they were published."""

    def __init__(self, name: str, *, arrays: bool = False) -> None:
        self.counts: Counter[str] = Counter()
        self._batches = [line["batch"] for line in recorded(name)]
        if arrays:
            self._batches = [
                [at, [as_array(one) for one in events], rank] for at, events, rank in self._batches
            ]

    def poll(self, now_s: float) -> list[Frame]:
        del now_s
        batches, self._batches = self._batches, []
        return [Frame(msgspec.msgpack.encode(one)) for one in batches]


def feed(frames: Recorded, *, all_one: bool = False, **given: Any) -> KvEventFeed:
    rules = (StaticRule(kind="static", tenant="all"),) if all_one else SALTS
    return KvEventFeed(
        frames,
        KvEventSource(endpoint="tcp://127.0.0.1:1", engine="e0"),
        KvEventSettings(**given),
        tenancy=Tenancy(TenancySettings(rules=rules)),
        table=lambda _: TABLE,
        tags=lambda: BlockTags(KEYS.tag_key),
    )


def played(one: KvEventFeed) -> list[KvRecord]:
    made = one(0.0) + one.finish()
    assert not one.broken
    return made


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("arrays", [False, True])
def test_every_block_is_accounted_for(name: str, *, arrays: bool) -> None:
    events = [event for line in recorded(name) for event in line["batch"][1]]
    assert len(recorded(name)) == RUNS[name]
    stored = sum(len(one["block_hashes"]) for one in events if one["type"] == "BlockStored")
    removed = sum(len(one["block_hashes"]) for one in events if one["type"] == "BlockRemoved")
    one = feed(Recorded(name, arrays=arrays), every_block=True)
    made = [event for event in played(one) if isinstance(event, EngineEvent)]
    counts = one.owners.counts
    assert counts["stored"] + counts["again"] == stored
    assert counts["removed"] == removed
    assert sum(event.kind is EventKind.RELEASED for event in made) == removed


@pytest.mark.parametrize("name", [name for name in RUNS if "session" not in name])
def test_engines_that_keep_salts_apart_are_not_accused(name: str) -> None:
    assert played(feed(Recorded(name))) == []


def test_the_prefix_that_was_reused_across_tenants_is_told() -> None:
    made = played(feed(Recorded("vllm/h-session-reuse-events/kv_events.jsonl")))
    assert [
        (one.kind, one.detail, one.tenant, one.other_tenant)
        for one in made
        if isinstance(one, EngineEvent)
    ] == [(EventKind.REUSED, "tenant_differs", "umbrella", "initech")]
    assert len(made) == 1


def truths(name: str) -> Iterator[tuple[list[int], list[int]]]:
    """Yield prompt and response of every request whose client saw both as ids."""
    for truth in recorded(name):
        answer = truth.get("resp") or {}
        chunks = [answer] if answer else truth.get("chunks") or []
        prompt: list[int] = []
        response: list[int] = []
        for chunk in chunks:
            for choice in chunk.get("choices") or []:
                prompt = prompt or choice.get("prompt_token_ids") or []
                response += choice.get("token_ids") or []
            prompt = prompt or chunk.get("prompt_token_ids") or []
        if prompt:
            yield prompt, response


def logged() -> Iterator[tuple[list[int], list[int]]]:
    """Yield prompt and response of every request of SGLang's own log."""
    path = Path(os.environ["BLEEDWATCH_EVAL_DATA"]) / "engine-logs/sglang/a-level3-json"
    data = subprocess.run(
        ["zstd", "-dcf", str(path / "reqlog/vm_0.log.zst")], capture_output=True, check=True
    ).stdout
    numbered = enumerate(data.splitlines(), start=1)
    for one in SglangLog(numbered, engine="e0", coverage=Coverage()):
        if one.prompt_ids:
            yield one.prompt_ids, one.response_ids or []


@pytest.mark.parametrize(
    ("events", "requests", "block"),
    [
        (
            "vllm/a-debug-text/kv_events.jsonl.zst",
            lambda: truths("vllm/a-debug-text/requests.jsonl.zst"),
            32,
        ),
        ("sglang/a-level3-json/kv_events.jsonl.zst", logged, 1),
    ],
    ids=["vllm", "sglang"],
)
def test_sequences_are_what_clients_sent_and_got(
    events: str, requests: Callable[[], Iterator[tuple[list[int], list[int]]]], block: int
) -> None:
    """A prompt may go on into its response by a block; a response begins within the last one."""
    one = feed(Recorded(events), all_one=True, sequences=True)
    made = [record for record in played(one) if isinstance(record, SequenceRecord)]
    texts = [(TABLE.hash(p + r).tobytes(), len(p)) for p, r in requests()]
    placed = dict.fromkeys(Kind, 0)
    absent = dict.fromkeys(Kind, 0)
    for record in made:
        hashes = from_record(record).token_hashes.tobytes()
        found = [(text.find(hashes) // 4, tokens) for text, tokens in texts if hashes in text]
        end = len(hashes) // 4
        fits = {
            Kind.PROMPT: any(at + end <= tokens + block for at, tokens in found),
            Kind.RESPONSE: any(at >= tokens - block for at, tokens in found),
        }
        placed[record.kind] += fits[record.kind]
        absent[record.kind] += not found
    total = {kind: sum(record.kind is kind for record in made) for kind in Kind}
    print({str(kind): (placed[kind], absent[kind], total[kind]) for kind in Kind})
    assert min(placed.values()) > 30
    # what no client saw whole is absent: requests that were aborted or never answered
    for kind in Kind:
        assert placed[kind] > 0.85 * total[kind]
