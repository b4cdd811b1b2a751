"""`make alert-kills`: kills a sender many times while it delivers; exits 1 if it went wrong."""

import sys
import tempfile
from pathlib import Path

from tests.alerts.kills import run


def main() -> None:
    """Run the rounds that are asked for and print what the receiver saw."""
    rounds = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        verdict = run(Path(folder), rounds=rounds, seed=rounds)
    print(
        f"{verdict.kills} kills, {verdict.put} notifications: {verdict.lost} lost, "
        f"{verdict.twice} delivered twice (at most one for each kill), "
        f"{verdict.out_of_order} incidents out of order"
    )
    sys.exit(0 if verdict.is_good else 1)


if __name__ == "__main__":
    main()
