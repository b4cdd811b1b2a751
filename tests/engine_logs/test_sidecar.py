"""Genuine logs replayed as live files that rotate in the middle of lines: each request once."""

import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from detector.model import Kind
from tests.sidecar.process import SidecarProcess, Site
from tests.streams.process import until
from tests.unit.growing_log import GrowingLog

ALL_ONE_TENANT = {"tenancy": {"rules": [{"kind": "static", "tenant": "acme"}]}}

PAUSE_S = 0.3
"""A few looks of the sidecar at its log."""


def replayed(site: Site, content: bytes) -> None:
    """Write a log as an engine does; cut lines by a rename, a copytruncate, and a stop between."""
    cuts = [len(content) * part // 4 for part in (1, 2, 3)]
    cuts = [at if content[at - 1 : at] != b"\n" else at + 1 for at in cuts]
    log = GrowingLog(site.log)
    first = SidecarProcess(site, site.folder / "stderr")
    try:
        until((site.folder / "checkpoint").exists)
        log.write(content[: cuts[0]])
        time.sleep(PAUSE_S)
        log.rotate()
        log.write(content[cuts[0] : cuts[1]])
        time.sleep(PAUSE_S)
        log.copy_truncate()
        log.write(content[cuts[1] : cuts[2]])
        time.sleep(PAUSE_S)
        first.kill()
        log.rotate()
        log.write(content[cuts[2] :])
        log.close()
        second = SidecarProcess(site, site.folder / "stderr")
        try:
            second.await_start()
            assert second.stop() == 0
        finally:
            second.kill()
    finally:
        first.kill()


class Genuine(NamedTuple):
    """A log, and how many requests of it have ids of a prompt and of a response."""

    name: str
    log_format: str
    prompts: int
    responses: int


LOGS = (
    Genuine("sglang/a-level3-json/reqlog/vm_0.log.zst", "sglang", prompts=189, responses=156),
    Genuine("vllm/a-debug-text/server.log.zst", "vllm", prompts=187, responses=76),
)


@pytest.mark.parametrize("log", LOGS, ids=[log.log_format for log in LOGS])
def test_every_request_with_ids_is_on_the_broker(
    kafka: str, topic_prefix: str, tmp_path: Path, log: Genuine
) -> None:
    path = Path(os.environ["BLEEDWATCH_EVAL_DATA"]) / "engine-logs" / log.name
    content = subprocess.run(["zstd", "-dcf", str(path)], capture_output=True, check=True).stdout
    site = Site(tmp_path, kafka, topic_prefix, log_format=log.log_format, **ALL_ONE_TENANT)
    replayed(site, content)
    whole = tmp_path / "whole.log"
    whole.write_bytes(content)
    told = site.told()
    assert set(told) == set(site.expected(whole))
    ids = {kind: {one[1] for one in told if one[2] == kind} for kind in Kind}
    assert (len(ids[Kind.PROMPT]), len(ids[Kind.RESPONSE])) == (log.prompts, log.responses)
