"""The files that commands of the documents name, with one bleed from acme to globex in the logs."""

import gzip
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import zstandard

from detector.model import RequestId
from detector.sample.traffic import SampleRequest
from ingest.key_file import new_secret
from ingest.kv_lease.book import Book
from ingest.kv_lease.events import Owner
from ingest.kv_lease.journal import Journal
from tests.check.incident_store import fill
from tests.e2e.program import run
from tests.e2e.traffic import EPOCH_S, pairs, row, write_config, write_vllm
from tests.unit.lease_station import KEY, POOL, Clock

TRACED: Final = "81f3"
ASKING: Final = "90aa"
"""Requests of the documents, without the chatcmpl- that vLLM puts before them."""

HISTORY_S: Final = 2 * 3_600
"""Longer than `detection.commonness.learning_ms`, so findings may be high."""

DEPLOYMENT: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: engine}
spec:
  template:
    spec:
      containers:
        - name: sglang
          image: lmsysorg/sglang:v0.5.20
          args: [--model-path, m, --max-total-tokens, "681280", --host, 0.0.0.0]
"""

MODEL: Final = '{"model_type": "deepseek_v3", "max_position_embeddings": 1048576}'


class Day(NamedTuple):
    """The requests of a log, and those of the hours before it."""

    before: list[SampleRequest]
    now: list[SampleRequest]


def day(names: tuple[str, str]) -> Day:
    """Return two hours in which nothing bleeds, and a bleed between two requests of these names."""
    quiet = pairs(60, seed=5)[::2]
    step = HISTORY_S / len(quiet)
    before = [
        _moved(one, f"{one.tenant}-{one.request_id[-8:]}", number * step - HISTORY_S - one.ts)
        for number, one in enumerate(quiet)
    ]
    now = [_moved(one, name, 0.0) for one, name in zip(pairs(1), names, strict=True)]
    return Day(before, now)


def write_log(path: Path, requests: list[SampleRequest]) -> None:
    """Write a vLLM log, last changed when its last line was written: vLLM tells no year."""
    write_vllm(path, requests)
    last = EPOCH_S + max(one.ts_end for one in requests)
    os.utime(path, (last, last))


def fill_folder(folder: Path) -> Mapping[str, str]:
    """Write all files; return what stands in the folder in place of ids of the documents."""
    before, now = day((ASKING, TRACED))
    for name in ("server.log.1", "server-2026-11-28.log"):
        write_log(folder / name, before)
    for name in ("server.log", "server-2026-11-29.log"):
        write_log(folder / name, now)
    packed = folder / "server.log.1.gz"
    packed.write_bytes(gzip.compress((folder / "server.log.1").read_bytes()))
    os.utime(packed, (EPOCH_S, EPOCH_S))
    lines = "".join(f"{json.dumps(row(one))}\n" for one in now)
    (folder / "requests.jsonl.zst").write_bytes(zstandard.compress(lines.encode()))
    (folder / "ids.json").write_text(json.dumps(now[0].prompt_ids))
    outputs = [{"kind": "stdout", "name": "on-call", "path": "alerts.jsonl"}]
    write_config(folder / "bleedwatch.yaml", outputs=outputs)
    write_config(folder / "sidecar.yaml", sidecar={"files": ["server.log"]})
    (folder / "deployment.yaml").write_text(DEPLOYMENT)
    (folder / "config.json").write_text(MODEL)
    (folder / ".run").mkdir()
    new_secret(folder / "secret.key")
    done = run(
        "replay", "server.log", "--config", "bleedwatch.yaml", "--key-file", "secret.key",
        "--save", "findings.jsonl", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    _, incident = fill(folder)
    return {"inc-7f3a": incident, "5f0c6f2b8f6f": _audit(folder)}


def _audit(folder: Path) -> str:
    """Write the audit files of an engine; return the tag of a block."""
    book = Book(
        engine="e0", kv_pool=POOL, key=KEY, audit=Journal(folder / "audit.jsonl"),
        invalidate=len, clock=Clock(),
    )  # fmt: skip
    for name in (ASKING, TRACED):
        with book.lease(Owner("acme", f"chatcmpl-{name}", 1), name) as lease:
            lease.keep(3_600_000)
    text = (folder / "audit.jsonl").read_bytes()
    (folder / "audit.jsonl.1.gz").write_bytes(gzip.compress(text[: text.index(b"\n") + 1]))
    return str(json.loads(text.splitlines()[0])["block"])


def _moved(request: SampleRequest, name: str, by_s: float) -> SampleRequest:
    return replace(
        request,
        request_id=RequestId(name),
        ts=request.ts + by_s,
        ts_first=request.ts_first + by_s,
        ts_end=request.ts_end + by_s,
    )
