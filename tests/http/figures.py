"""How fast an API on one core answers with 100,000 findings stored; `make api-figures`.

The load comes from another process on another core, at a fixed pace whatever the answers take: the
time of an answer counts from when its request was due.
"""

import asyncio
import os
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import aiohttp
import msgspec
from playwright.sync_api import sync_playwright

from exporters.incidents import lifecycle
from exporters.incidents.model import Observed
from exporters.store import findings as finding_rows
from exporters.store import incidents as incident_rows
from exporters.store.database import open_store
from exporters.store.settings import StoreSettings
from tests.http.kit import NOW_MS, served
from tests.services.packages import program
from tests.store.made import found

INCIDENTS: Final = 10_000
EACH: Final = 10
PER_SECOND: Final = 300
SECONDS: Final = 20
CONNECTIONS: Final = 16
POOLS: Final = 50
TENANTS: Final = 400
RULES: Final = ("BW001", "BW002", "BW101", "BW203")


def fill(folder: Path) -> None:
    """Store the findings and incidents."""
    rng = random.Random(8)
    with closing(open_store(StoreSettings(url=f"sqlite:///{folder}/store.db"))) as database:
        for begin in range(0, INCIDENTS, 500):
            with database.write() as connection:
                for number in range(begin, begin + 500):
                    many = [
                        found(
                            f"f{number}-{place}",
                            100.0 * number + place,
                            pool=f"pool-{number % POOLS}",
                            rule=rng.choice(RULES),
                            sink=f"tenant-{rng.randrange(TENANTS)}",
                            source=f"tenant-{rng.randrange(TENANTS)}",
                        )
                        for place in range(EACH)
                    ]
                    seen = [
                        Observed(
                            finding=one, from_ms=one.observed_at_ms, until_ms=one.observed_at_ms
                        )
                        for one in many
                    ]
                    opened = lifecycle.opened(seen[0], now_ms=NOW_MS + number)
                    whole = msgspec.structs.replace(opened.incident, finding_count=EACH)
                    incident_rows.put_change(
                        connection, msgspec.structs.replace(opened, incident=whole)
                    )
                    for one in seen:
                        finding_rows.put(connection, one, whole.id)


def serve(folder: Path) -> None:
    """Serve the store on one core until standard input ends."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with served(folder, api={}) as api:
        print(api.url, flush=True)
        sys.stdin.read()


def question(rng: random.Random) -> tuple[str, str]:
    """Return the kind and path of one request of the mix."""
    number = rng.randrange(INCIDENTS)
    kind = rng.choices(
        ("findings by filter", "one finding", "incidents", "one incident"), (4, 2, 1, 1)
    )[0]
    if kind == "one finding":
        return kind, f"/v1/findings/f{number}-{rng.randrange(EACH)}"
    if kind == "one incident":
        return kind, f"/v1/incidents/inc-f{number}-0"
    if kind == "incidents":
        return kind, rng.choice(
            (
                "/v1/incidents",
                "/v1/incidents?state=open",
                f"/v1/incidents?kv_pool=pool-{number % POOLS}",
            )
        )
    asked = (
        f"tenant=tenant-{number % TENANTS}",
        f"rule={rng.choice(RULES)}",
        f"kv_pool=pool-{number % POOLS}",
        "severity=high",
        f"since_ms={number * 50_000}&until_ms={number * 100_000}",
    )
    return kind, f"/v1/findings?{rng.choice(asked)}&limit=20"


async def load(url: str) -> dict[str, list[float]]:
    """Ask at the pace, and return how long each answer took, by kind."""
    rng = random.Random(9)
    taken: dict[str, list[float]] = {}
    statuses: Counter[int] = Counter()
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(url, connector=connector) as session:

        async def ask(kind: str, path: str, due_s: float) -> None:
            async with session.get(path) as answer:
                await answer.read()
            statuses[answer.status] += 1
            taken.setdefault(kind, []).append(time.perf_counter() - due_s)

        begin_s = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(PER_SECOND * SECONDS):
                due_s = begin_s + number / PER_SECOND
                await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
                group.create_task(ask(*question(rng), due_s))
        lasted_s = time.perf_counter() - begin_s
    print(f"{sum(statuses.values()) / lasted_s:.0f} requests/s, statuses {dict(statuses)}")
    return taken


def opened_in_browser(url: str) -> float:
    """Return the seconds until the list of incidents is drawn in Chromium."""
    with sync_playwright() as playwright:
        path = program("chromium", "chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.goto(f"{url}/runbooks")
        begin_s = time.perf_counter()
        page.goto(f"{url}/incidents")
        page.locator("tbody tr").last.wait_for()
        taken_s = time.perf_counter() - begin_s
        browser.close()
    return taken_s


def main() -> None:
    """Fill, serve, ask, and print."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder)
        words = [sys.executable, "-W", "ignore", "-m", "tests.http.figures", "serve", name]
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout
            url = server.stdout.readline().strip()
            taken = asyncio.run(load(url))
            print(f"the list of incidents is drawn in {opened_in_browser(url):.2f} s")
            used = Path(f"/proc/{server.pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks = sum(int(part) for part in used[11:13]) / os.sysconf("SC_CLK_TCK")
            print(f"the api has used {ticks:.1f} s of CPU time")
            server.communicate()
    everything = [one for of_kind in taken.values() for one in of_kind]
    for kind, times in {**taken, "all": everything}.items():
        ranked = sorted(times)
        p50, p99 = (ranked[int(len(ranked) * share)] * 1000 for share in (0.5, 0.99))
        print(f"{kind:20} {len(ranked):6} requests, p50 {p50:6.1f} ms, p99 {p99:6.1f} ms")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(Path(sys.argv[2]))
    else:
        main()
