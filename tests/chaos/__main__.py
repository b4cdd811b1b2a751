"""Runs rounds of trouble and prints what was lost, which must be nothing.

python -m tests.chaos ROUNDS [SCENARIO...]
"""

import statistics
import sys
import tempfile
from pathlib import Path

from tests.chaos.scenarios import SCENARIOS, Scenario, Stage
from tests.chaos.traffic import Round
from tests.kafka.cluster import KafkaServer, running

TRIES = 3
"""Rounds at most for each that counts: one that misses its moment is repeated."""


def run(scenario: Scenario, rounds: int, server: KafkaServer, folder: Path) -> list[Round]:
    """Run rounds until enough of them count."""
    done: list[Round] = []
    for seed in range(TRIES * rounds):
        one = scenario(Stage(server, folder, seed))
        done.append(one)
        print(
            f"  {one.scenario}, round {seed}: {one.findings} findings, {one.lost} lost, "
            f"{one.strange} strange, {one.recovery_s:.1f} s{'' if one.counted else ', missed'}",
            file=sys.stderr,
            flush=True,
        )
        if sum(each.counted for each in done) == rounds:
            break
    return done


def line(name: str, rounds: list[Round]) -> str:
    """Return one line of the table."""
    counted = [one for one in rounds if one.counted]
    times = sorted(one.recovery_s for one in counted) or [0.0]
    return (
        f"{name:18} {len(counted):6} {len(rounds) - len(counted):6} "
        f"{sum(one.findings for one in counted):8} {sum(one.lost for one in counted):5} "
        f"{sum(one.repeated for one in counted):8} {sum(one.strange for one in counted):11} "
        f"{statistics.median(times):9.1f} {times[-1]:8.1f}"
    )


def main(rounds: int, names: list[str]) -> int:
    """Run the scenarios; return 1 if anything was lost, or too few rounds met their moment."""
    print(
        "scenario           rounds missed findings  lost repeated after dedup  recovery  longest",
        flush=True,
    )
    bad = False
    with tempfile.TemporaryDirectory(prefix="bleedwatch-chaos-") as kept:
        for name in names or SCENARIOS:
            folder = Path(kept) / name.replace(" ", "-")
            folder.mkdir()
            with running(folder / "kafka") as server:
                done = run(SCENARIOS[name], rounds, server, folder)
            print(line(name, done), flush=True)
            bad |= any(one.lost or one.strange for one in done)
            bad |= sum(one.counted for one in done) < rounds
    return int(bad)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
