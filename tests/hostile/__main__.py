"""Attacks a worker with so many records on each input (`python -m tests.hostile RECORDS`)."""

import sys
import tempfile
from pathlib import Path

from tests.hostile.attack import attack, lines
from tests.hostile.verdict import faults
from tests.kafka.cluster import running
from tests.streams.real import make_cluster
from tests.unit.wire import SECRET_BYTES

SEED = 20261129
PER_RECORD_S = 0.01
"""Far longer than a record takes; only a worker that stands still waits for so long."""


def main(records: int) -> int:
    """Attack; return 1 if anything is not accounted for."""
    with tempfile.TemporaryDirectory(prefix="bleedwatch-hostile-") as kept:
        folder = Path(kept)
        key_file = folder / "key"
        key_file.touch(mode=0o600)
        key_file.write_text(SECRET_BYTES.hex())
        with running(folder / "kafka") as server:
            cluster = make_cluster(server.bootstrap, "hostile", key_file)
            report = attack(cluster, records, SEED, folder / "log", 60 + records * PER_RECORD_S)
    print("\n".join(lines(report.topics.items())))
    print(
        f"{report.seconds:.0f} s; {len(report.good_found)} of {len(report.good_wanted)} bleeds and "
        f"{report.good_rows} of {report.good_events} rejections of good records found; worker: "
        f"{report.resident_bytes / 2**20:.0f} MiB, exit code {report.exit_code}"
    )
    print(", ".join(f"{reason} {count:,}" for reason, count in report.letters.most_common()))
    found = faults(report)
    print("\n".join(found), file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
