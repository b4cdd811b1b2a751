"""The wire format: what packing and unpacking a token costs, sealed, against records one by one."""

from typing import Final

from detector.benchmarks.harness import Work, interleave
from detector.benchmarks.kernels import Progress, Report
from detector.benchmarks.workload import token_batch
from detector.model import Kind
from detector.sketch.token_table import Secret, TokenTable
from ingest.envelope import pack, unpack
from ingest.packing_settings import PackingSettings
from ingest.schema import decode, encode
from ingest.schema_records import SequenceRecord
from ingest.sealing import KeyRing

LENGTHS: Final = (300, 1_000, 10_000)
"""Tokens per sequence: 300 is the mean of recorded traffic, prompts and responses together."""

TENANTS: Final = 20
ROUNDS: Final = 15
SECONDS: Final = 4.0

_SECRET: Final = Secret(bytes(range(32)))


def run_records(*, on_progress: Progress) -> Report:
    """Pack and unpack a full batch of each length; the bytes per token stand beside the name."""
    report = Report()
    for length in LENGTHS:
        on_progress(f"records of {length} tokens")
        _measure(report, length, KeyRing.of(_SECRET))
    return report


def _measure(report: Report, length: int, ring: KeyRing) -> None:
    records = _records(length)
    tokens = sum(record.token_count for record in records)
    batch, single = pack(records, ring), [encode(record) for record in records]
    ours = f"sealed batch, {len(batch) / tokens:.2f} bytes a token"
    plain = f"one by one in the clear, {sum(map(len, single)) / tokens:.2f} bytes a token"

    def packing() -> int:
        pack(records, ring)
        return tokens

    def encoding() -> int:
        for record in records:
            encode(record)
        return tokens

    def unpacking() -> int:
        return sum(record.token_count for record in unpack(batch, ring).records)

    def decoding() -> int:
        return sum(decode(SequenceRecord, data).token_count for data in single)

    works: dict[str, dict[str, Work]] = {
        "write": {ours: packing, plain: encoding},
        "read": {ours: unpacking, plain: decoding},
    }
    for name, contestants in works.items():
        timings = interleave(contestants, rounds=ROUNDS, seconds=SECONDS)
        report.add(f"{name}, {length} tokens each", timings, unit="token", ours=ours)


def _records(length: int) -> list[SequenceRecord]:
    """Return as many records as fill a batch; hashed, of several tenants."""
    keys = _SECRET.keys()
    total = PackingSettings().target_bytes // 4 // length * length
    flat = token_batch(total, length=length, seed=length)
    hashes = TokenTable(keys.hash_key).hash(flat.tokens).astype("<u4")
    return [
        SequenceRecord(
            tenant=f"tenant-{number % TENANTS}",
            request_id=f"chatcmpl-{number:032x}",
            kv_pool="engine-1",
            engine="engine-1",
            model="qwen3-8b",
            kind=Kind.RESPONSE,
            started_at_ms=1_764_457_200_000 + number,
            ended_at_ms=1_764_457_201_000 + number,
            token_hashes=hashes[begin : begin + length].tobytes(),
            token_count=length,
            key_id=keys.key_id,
            finish_reason="stop",
        )
        for number, begin in enumerate(range(0, total, length))
    ]
