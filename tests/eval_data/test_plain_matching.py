"""Plain 10-token matching flags as many clean responses of the recorded hour as measured."""

from pathlib import Path

import numpy as np

from detector.evaluation.raw_match import raw_flagged
from detector.model import EngineId, Kind, PoolId, RequestId, Sequence, TenantId
from tests.reference.traffic import Record, read_jsonl

FLAGGED = 957


def sequence(record: Record, kind: Kind) -> Sequence:
    return Sequence(
        tenant=TenantId(record["tenant"]), request_id=RequestId(record["request_id"]),
        kv_pool=PoolId(record["node"]), engine=EngineId(record["node"]), model=record["model"],
        kind=kind, started_at_ms=round(record["ts"] * 1000),
        ended_at_ms=round(record["ts_end"] * 1000),
        token_hashes=np.array(record[f"{kind.value}_ids"], np.uint32) * np.uint32(2654435761),
    )  # fmt: skip


def test_flagged_responses(recorded_traffic: Path) -> None:
    hour = read_jsonl(recorded_traffic / "dev" / "requests.jsonl.zst")
    assert raw_flagged([sequence(record, kind) for record in hour for kind in Kind]) == FLAGGED
