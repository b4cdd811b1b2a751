"""`python -m tests.sidecar KILLS`: kills a sidecar so often under load; nothing may be lost."""

import sys
import tempfile
from pathlib import Path

from tests.kafka.cluster import running
from tests.sidecar.kills import kill_and_count
from tests.sidecar.process import Site


def main() -> int:
    """Kill sidecars on logs of both engines; return 1 if a sequence was lost."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    lost = 0
    with (
        tempfile.TemporaryDirectory(prefix="bleedwatch-sidecar-") as name,
        running(Path(name) / "kafka") as server,
    ):
        for log_format in ("sglang", "vllm"):
            folder = Path(name) / log_format
            folder.mkdir()
            site = Site(folder, server.bootstrap, f"kills-{log_format}", log_format=log_format)
            outcome = kill_and_count(site, kills=kills, seed=7, log_format=log_format)
            print(f"{log_format}: {outcome}", flush=True)
            lost += outcome.lost + outcome.strange
    return 1 if lost else 0


sys.exit(main())
