"""Kills a sender again and again while it delivers, and says what its receiver saw."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection

from detector.alerting import wall_ms
from exporters.incidents.model import Change, ChangeKind
from exporters.sending.announce import announce
from exporters.sending.leadership import NAME
from exporters.store import outbox
from exporters.store.database import Database
from exporters.store.tables import leases
from tests.alerts.kit import change, keep, store
from tests.alerts.sender_main import settings
from tests.fakes.receiver import receiver

ROUND_S = 90.0
"""How long a round may take before it has failed."""

KINDS = (ChangeKind.OPENED, ChangeKind.SEVERITY_RAISED, ChangeKind.RESOLVED)


class Verdict(NamedTuple):
    """What a receiver saw. `twice` are ids it took more than once; `kills` bounds their number."""

    kills: int
    put: int
    lost: int
    twice: int
    most_repeats: int
    out_of_order: int

    @property
    def is_good(self) -> bool:
        """Nothing lost, no repeat without a kill, every incident in order."""
        return not self.lost and not self.out_of_order and self.twice <= self.kills


class _Call(msgspec.Struct):
    class Data(msgspec.Struct):
        id: str
        incident: str
        sequence: int

    data: Data


def run(folder: Path, *, rounds: int, seed: int, incidents: int = 12) -> Verdict:
    """Kill a sender `rounds` times in the middle of its deliveries; let the last one finish."""
    chance = random.Random(seed)
    with store(folder) as database, receiver() as there:
        url = f"sqlite:///{folder}/alerts.db"
        outputs = settings(url, there.url).outputs
        put = kills = 0
        for number in range(rounds + 1):
            with database.write() as connection:
                if _open(connection) < 2 * incidents:
                    changes = _changes(number, incidents)
                    keep(connection, changes)
                    put += announce(connection, changes, outputs=outputs)
                connection.execute(leases.delete().where(leases.c.name == NAME))
            with subprocess.Popen(
                [sys.executable, "-m", "tests.alerts.sender_main", url, there.url],
                stdout=subprocess.PIPE,
            ) as process:
                try:
                    if number == rounds:
                        _wait(lambda: not _left(database))
                        process.send_signal(signal.SIGTERM)
                        process.wait(ROUND_S)
                    else:
                        seen = len(there.calls) + chance.randint(1, 2 * incidents)
                        _wait(lambda seen=seen: len(there.calls) >= seen)  # type: ignore[misc]
                        time.sleep(chance.uniform(0, 0.01))
                        kills += 1
                finally:
                    process.kill()
        calls = [msgspec.json.decode(call.body, type=_Call).data for call in there.calls]
    return _verdict(calls, kills=kills, put=put)


def _verdict(calls: list[_Call.Data], *, kills: int, put: int) -> Verdict:
    counted = Counter(call.id for call in calls)
    orders: dict[str, list[int]] = defaultdict(list)
    for call in calls:
        orders[call.incident].append(call.sequence)
    return Verdict(
        kills=kills,
        put=put,
        lost=put - len(counted),
        twice=sum(count > 1 for count in counted.values()),
        most_repeats=max(counted.values()),
        out_of_order=sum(order != sorted(order) for order in orders.values()),
    )


def _changes(number: int, incidents: int) -> list[Change]:
    return [
        change(kind, f"inc-{number}-{one}", version=version, at_ms=wall_ms())
        for version, kind in enumerate(KINDS, start=1)
        for one in range(incidents)
    ]


def _left(database: Database) -> int:
    with database.read() as connection:
        return _open(connection)


def _open(connection: Connection) -> int:
    counts = outbox.counts(connection).get("hook", {})
    return sum(counts.get(state, 0) for state in outbox.OPEN)


def _wait(done: Callable[[], bool]) -> None:
    until_s = time.monotonic() + ROUND_S
    while not done():
        if time.monotonic() > until_s:
            raise TimeoutError("the sender did not get on")
        time.sleep(0.002)
