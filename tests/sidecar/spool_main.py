"""`python -m tests.sidecar.spool_main FOLDER FIRST`: fills a spool until it is killed.

Prints the number of the last message that is safe, after each sync.
"""

import sys
from itertools import count
from pathlib import Path

from tests.unit.spools import message, opened

BATCH = 3


def main() -> None:
    """Append; every third message is followed by a sync."""
    spool = opened(Path(sys.argv[1]), sync=True, max_bytes=2**28)
    for number in count(int(sys.argv[2])):
        spool.append(message(number, size=1 + 997 * (number % 7)))
        if number % BATCH == 0:
            spool.sync()
            print(number, flush=True)


main()
