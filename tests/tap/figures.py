"""What a tap costs: added latency and lost throughput, beside the same load without it.

`make tap-figures`. The tap has one core, the engine and the load share the other.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from tests.tap.process import TapProcess, tap_process

TAP_CORE: Final = "0"
LOAD_CORE: Final = "1"
SECONDS: Final = 15.0
"""Of each measurement."""

STREAMS: Final = 16
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def _request(*, stream: bool) -> bytes:
    asked = {
        "model": "fast",
        "messages": [{"role": "user", "content": "x" * 600}],
        "stream": stream,
    }
    body = json.dumps(asked, separators=(",", ":")).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: fast\r\nx-tenant-id: acme\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Load(NamedTuple):
    """Times of single answers (first byte, whole) in seconds, and answers a second."""

    first_s: list[float]
    whole_s: list[float]
    rate: float


async def _client(url: str, until_s: float, load: Load, *, stream: bool) -> None:
    host = urlsplit(url)
    reader, writer = await asyncio.open_connection(host.hostname, host.port)
    request, end = _request(stream=stream), b"0\r\n\r\n" if stream else b"}"
    while time.perf_counter() < until_s:
        began = time.perf_counter()
        writer.write(request)
        heard = await reader.read(65_536)
        load.first_s.append(time.perf_counter() - began)
        while not heard.endswith(end):
            heard = (heard + await reader.read(65_536))[-65_536:]
        load.whole_s.append(time.perf_counter() - began)
    writer.close()


def loaded(url: str, clients: int, *, stream: bool, seconds: float = SECONDS) -> Load:
    """Load a server with so many clients, each asking again at once."""

    async def run() -> Load:
        load = Load([], [], 0.0)
        until_s = time.perf_counter() + seconds
        await asyncio.gather(*(_client(url, until_s, load, stream=stream) for _ in range(clients)))
        return load._replace(rate=len(load.whole_s) / seconds)

    return asyncio.run(run())


@contextmanager
def fast_engine() -> Iterator[str]:
    """Run the engine on the core of the load."""
    process = subprocess.Popen(
        ["taskset", "-c", LOAD_CORE, sys.executable, "-m", "tests.tap.fast_engine"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def resident_bytes(tap: TapProcess) -> int:
    """Return what the tap holds in memory."""
    return int(Path(f"/proc/{tap.process.pid}/statm").read_text().split()[1]) * _PAGE


def cpu_s(tap: TapProcess) -> float:
    """Return the CPU time that the tap has used."""
    fields = Path(f"/proc/{tap.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _row(name: str, direct: Load, through: Load, used_s: float) -> None:
    parts = [f"{name:<28}"]
    for side in ("first_s", "whole_s"):
        for at in (49, 98):
            apart = [1_000 * quantiles(getattr(one, side), n=100)[at] for one in (direct, through)]
            parts.append(f"{apart[0]:7.2f} {apart[1] - apart[0]:+6.2f}")
    loss = 100 * (1 - through.rate / direct.rate)
    parts.append(f"{direct.rate:9.1f} {through.rate:9.1f} {loss:6.1f} %")
    parts.append(f"{1_000 * used_s / len(through.whole_s):6.2f}")
    print(*parts, sep=" | ", flush=True)


def main() -> None:
    """Measure and print."""
    os.sched_setaffinity(0, {int(LOAD_CORE)})
    with (
        tempfile.TemporaryDirectory() as folder,
        fast_engine() as direct,
        tap_process(Path(folder), direct, cores=TAP_CORE) as tap,
    ):
        print(f"load of the machine: {os.getloadavg()[0]:.1f}")
        print(
            "ms: without a tap, and what it adds; first byte p50, p99; whole p50, p99; answers/s, "
            "loss; ms of CPU of the tap for each"
        )
        for name, clients, stream in (
            ("1 client, whole", 1, False),
            ("16 clients, whole", 16, False),
            ("1 stream of 64 events", 1, True),
            ("16 streams of 64 events", STREAMS, True),
        ):
            alone = loaded(direct, clients, stream=stream)
            before_s = cpu_s(tap)
            through = loaded(tap.url, clients, stream=stream)
            _row(name, alone, through, cpu_s(tap) - before_s)


if __name__ == "__main__":
    main()
