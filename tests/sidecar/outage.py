"""Takes the broker away from a sidecar under load and gives it back; counts what that did.

`python -m tests.sidecar.outage --minutes 2`, on logs of both engines.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.kafka.cluster import KafkaServer, running
from tests.sidecar.kills import CATCH_UP_S, LOOK_MS, has_caught_up
from tests.sidecar.process import SidecarProcess, Site
from tests.sidecar.writer import LogWriter
from tests.streams.process import until

GOES_ON_S: Final = 5.0
"""The engine writes on while what waited is sent, and for so long behind it."""


class Outage(NamedTuple):
    """What an outage did. A sequence is known by all that it says."""

    away_s: float
    expected: int
    lost: int
    strange: int
    """Sequences that the log does not have: halves of others."""
    repeated: int
    """Sequences that are there more than once, with the same ids."""
    spooled: int
    """Messages that went to disk."""
    replayed: int
    dropped: int
    """Messages given up for room."""
    most_bytes: int
    """What the spool took on disk when the broker came back."""
    replay_s: float
    """From the broker's return until the spool was empty."""

    @property
    def is_whole(self) -> bool:
        """True if everything arrived as it was written, and something had to wait on disk."""
        return not (self.lost or self.strange or self.dropped) and self.spooled > 0


def outage(
    site: Site, server: KafkaServer, *, seconds: float, seed: int, log_format: str
) -> Outage:
    """Kill the site's broker for so long while an engine writes, start it again, and look."""
    said = site.folder / "sidecar.stderr"
    sidecar = SidecarProcess(site, said)
    writer = LogWriter(site.log, log_format=log_format, seed=seed, follower=sidecar)
    with sidecar.killed_at_last(), writer:
        until(lambda: _health(site)["tokens"] > 0)
        gone_s = time.monotonic()
        server.kill()
        time.sleep(seconds)
        most_bytes = _health(site)["spool"]["bytes"]
        server.start()
        back_s = time.monotonic()
        back_ms = time.time() * 1000 + LOOK_MS
        until(lambda: _is_empty(site, back_ms), CATCH_UP_S)
        replay_s = time.monotonic() - back_s
        time.sleep(GOES_ON_S)
        writer.end()
        ended_ms = time.time() * 1000 + LOOK_MS
        until(lambda: has_caught_up(site, ended_ms), CATCH_UP_S)
        spool = _health(site)["spool"]
        code = sidecar.stop()
    assert code == 0, said.read_text()
    told, expected = site.told(), site.expected(writer.whole)
    return Outage(
        away_s=back_s - gone_s,
        expected=len(expected),
        lost=len(set(expected) - set(told)),
        strange=len(set(told) - set(expected)),
        repeated=sum(count > 1 for count in told.values()),
        spooled=spool["spooled"],
        replayed=spool["replayed"],
        dropped=sum(spool["dropped"].values()),
        most_bytes=most_bytes,
        replay_s=replay_s,
    )


def _is_empty(site: Site, since_ms: float) -> bool:
    """Tell whether the sidecar has said since an instant that nothing waits on disk."""
    told = _health(site)
    return bool(told["at_ms"] > since_ms and told["spool"]["messages"] == 0)


def _health(site: Site) -> dict[str, Any]:
    path: Path = site.folder / "health.json"
    told: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {"tokens": 0}
    return told


def site_with_spool(folder: Path, server: KafkaServer, *, log_format: str) -> Site:
    """Make a site whose sidecar has a spool of the default size."""
    return Site(
        folder,
        server.bootstrap,
        f"outage-{log_format}",
        log_format=log_format,
        spool={"folder": str(folder / "spool")},
    )


def main() -> int:
    """Take the broker away once for each log format; return 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0, help="how long the broker is away")
    seconds = 60 * parser.parse_args().minutes
    failed = False
    with (
        tempfile.TemporaryDirectory(prefix="bleedwatch-outage-") as name,
        running(Path(name) / "kafka") as server,
    ):
        for log_format in ("sglang", "vllm"):
            folder = Path(name) / log_format
            folder.mkdir()
            site = site_with_spool(folder, server, log_format=log_format)
            seen = outage(site, server, seconds=seconds, seed=7, log_format=log_format)
            print(f"{log_format}: {seen}", flush=True)
            failed = failed or not seen.is_whole
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
