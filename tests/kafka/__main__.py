"""`python -m tests.kafka up|down [FOLDER]`: a Kafka node that outlives the command.

`up` writes its address into FOLDER/kafka.env (by default .run) in the form that the settings read;
a node that already answers is left alone. `down` ends it and removes its data.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from detector.errors import BleedwatchError
from tests.kafka.cluster import STOP_TIMEOUT_S, KafkaServer
from tests.kafka.jars import RUN

STATE: Final = "kafka.json"
ENV: Final = "kafka.env"


def main() -> int:
    """Run the command line and return its exit code."""
    commands = {"up": up, "down": down}
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in commands:
        print("usage: python -m tests.kafka up|down [FOLDER]", file=sys.stderr)
        return 2
    run = Path(sys.argv[2]) if len(sys.argv) == 3 else RUN
    run.mkdir(exist_ok=True)
    try:
        commands[sys.argv[1]](run)
    except BleedwatchError as error:
        print(f"error: {error.where}: {error.what}\n  next: {error.hint}", file=sys.stderr)
        return 2
    return 0


def up(run: Path) -> None:
    """Start the node unless it runs, and say how to use it."""
    state = _state(run)
    if state and _is_ours(state) and _answers(state["bootstrap"]):
        print(f"Kafka already serves {state['bootstrap']}; its log is {state['folder']}/server.log")
        return
    down(run)
    folder = Path(tempfile.mkdtemp(prefix="bleedwatch-kafka-"))
    server = KafkaServer(folder, outlives_us=True)
    began = time.monotonic()
    server.start()
    content = {"bootstrap": server.bootstrap, "folder": str(folder), "pid": str(server.pid)}
    (run / STATE).write_text(json.dumps(content), encoding="utf-8")
    line = f"BLEEDWATCH_KAFKA__BOOTSTRAP_SERVERS={server.bootstrap}\n"
    (run / ENV).write_text(line, encoding="utf-8")
    print(f"Kafka serves {server.bootstrap} after {time.monotonic() - began:.1f} s")
    print(f"next: set -a; . {run / ENV}; set +a; .venv/bin/bleedwatch topics create")


def down(run: Path) -> None:
    """End the node and remove its data; nothing to do is no error."""
    state = _state(run)
    if not state:
        return
    if _is_ours(state):
        _end(int(state["pid"]))
        print(f"Kafka at {state['bootstrap']} has ended")
    shutil.rmtree(state["folder"], ignore_errors=True)
    (run / ENV).unlink(missing_ok=True)
    (run / STATE).unlink(missing_ok=True)


def _state(run: Path) -> dict[str, str]:
    try:
        content: dict[str, str] = json.loads((run / STATE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return content


def _is_ours(state: dict[str, str]) -> bool:
    """Tell whether the process is still the node: its number may belong to another by now."""
    command = ["ps", "-ww", "-o", "args=", "-p", state["pid"]]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return f"{state['folder']}/server.properties" in shown


def _answers(bootstrap: str) -> bool:
    host, _, port = bootstrap.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except OSError:
        return False
    return True


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
