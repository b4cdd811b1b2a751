"""Contain a bleed on one engine: stop traffic, drain, flush, verify, restart, verify again.

    python contain.py --engine sglang --url http://10.0.0.7:30000 --incident inc-7f3a \
        --stop "kubectl label pod chat-0 traffic=off --overwrite" \
        --restart "kubectl delete pod chat-0 --wait" \
        --probe "bleedwatch probe http://10.0.0.7:30000 --i-own-this-endpoint --record probe.json" \
        --evidence contain.jsonl

Needs Python alone. Every step leaves a line of JSON in the evidence file before the next begins. It
ends with 1 where traffic does not stop, or where the restarted engine is not seen empty or fails
the probe. A flush that fails is written down, and mended by the restart. The API key of the engine,
if it has one, comes from the variable ENGINE_KEY.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

FLUSH = {"sglang": "/flush_cache", "vllm": "/reset_prefix_cache"}
RUNNING = {
    "sglang": ("sglang:num_running_reqs", "sglang:num_queue_reqs"),
    "vllm": ("vllm:num_requests_running", "vllm:num_requests_waiting"),
}
USED = {
    "sglang": ("sglang:kv_used_tokens", "sglang:num_used_tokens", "sglang:kv_evictable_tokens"),
    "vllm": ("vllm:kv_cache_usage_perc",),
}
TIMEOUT_S = 10


def ask(url, path, method="GET"):
    """Return the status and the text of an answer; 0 where nothing answers."""
    key = os.environ.get("ENGINE_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        with urlopen(Request(url + path, method=method, headers=headers), timeout=TIMEOUT_S) as got:
            return got.status, got.read(8_000_000).decode(errors="replace")
    except HTTPError as error:
        return error.code, ""
    except (URLError, OSError):
        return 0, ""


def total(url, names):
    """Return the sum of some metrics over all ranks, None where none of them is told."""
    _, page = ask(url, "/metrics")
    found = [
        float(value)
        for name in names
        for value in re.findall(rf"^{re.escape(name)}(?:\{{.*\}})? (\S+)", page, re.M)
    ]
    return sum(found) if found else None


def wait_for_zero(url, names, seconds):
    """Wait until metrics are zero twice in a row; return whether, and the last sum."""
    ends = time.monotonic() + seconds
    zeros, last = 0, None
    while True:
        last = total(url, names)
        zeros = zeros + 1 if last == 0 else 0
        if zeros == 2:
            return True, last
        if time.monotonic() > ends:
            return False, last
        time.sleep(0.2)


def run(command):
    """Run a command; return whether it ended well, and its exit code."""
    words = shlex.split(command)
    done = subprocess.run(words, stdout=sys.stderr, check=False)  # noqa: S603 - the operator's own
    return done.returncode == 0, f"exit code {done.returncode}"


def steps(given):
    """Yield each step as name, whether it must succeed, and what does it."""
    url, kind, patience = given.url.rstrip("/"), given.engine, given.patience

    def drain():
        is_idle, left = wait_for_zero(url, RUNNING[kind], patience)
        return is_idle, f"{left} requests run or wait"

    def flush():
        status, _ = ask(url, FLUSH[kind], method="POST")
        return status == 200, f"status {status} of {FLUSH[kind]}"

    def empty():
        is_empty, used = wait_for_zero(url, USED[kind], patience)
        return is_empty, f"KV memory in use: {used}"

    yield "stop", True, lambda: run(given.stop)
    yield "drain", True, drain
    yield "flush", False, flush
    yield "verify-flush", False, empty
    yield "restart", True, lambda: run(given.restart)
    yield "verify-restart", True, empty
    if given.probe:
        yield "probe", True, lambda: run(given.probe)


def main():
    """Take the steps in order."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--engine", required=True, choices=sorted(FLUSH))
    options.add_argument("--url", required=True)
    options.add_argument("--incident", required=True)
    options.add_argument("--stop", required=True, help="command that keeps requests away")
    options.add_argument("--restart", required=True, help="command that starts the engine anew")
    options.add_argument("--probe", help="command that tests the engine afterwards")
    options.add_argument("--evidence", required=True, help="file that each step is added to")
    options.add_argument("--patience", type=float, default=120, help="seconds for each wait")
    given = options.parse_args()
    for name, is_needed, step in steps(given):
        is_done, detail = step()
        line = {
            "incident": given.incident,
            "step": name,
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "ok": is_done,
            "detail": detail,
        }
        with open(given.evidence, "a", encoding="utf-8") as evidence:
            evidence.write(json.dumps(line) + "\n")
            evidence.flush()
            os.fsync(evidence.fileno())
        print(f"{'done' if is_done else 'FAILED'}: {name}: {detail}", file=sys.stderr)
        if is_needed and not is_done:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
