"""A real Kafka node as a child process: started, stopped, killed, frozen and started again.

One node, KRaft, on free ports of 127.0.0.1, with all its files in one folder. The same object can
be started again after `stop` or `kill`: ports and data stay.
"""

import contextlib
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from detector.errors import BrokerError
from tests.kafka.jars import class_path, java
from tests.kafka.properties import HOST, Ports, properties
from tests.kafka.security import Security

START_TIMEOUT_S: Final = 150
"""A start takes 4 s on two idle cores, and took 45 s on two that ten others wanted."""

QUICK_JVM: Final = "-XX:TieredStopAtLevel=1"
"""Compiles less: a start takes 3 s of CPU instead of 5. What lives long does without."""

STOP_TIMEOUT_S: Final = 30

READY: Final = "Kafka Server started"
"""What the broker logs once it serves."""


class KafkaServer:
    """One node. `bootstrap` is its plain listener, `sasl_ssl` and `ssl` exist with `security`."""

    def __init__(
        self,
        folder: Path,
        *,
        security: Security | None = None,
        more: Mapping[str, str] | None = None,
        log_dir: Path | None = None,
        heap_mb: int = 512,
        outlives_us: bool = False,
    ) -> None:
        self.folder = folder
        self.log_file = folder / "server.log"
        self.log_dir = log_dir or folder / "data"
        self._ports = Ports(*_free_ports(len(Ports._fields)))
        self._security = security
        self._more = dict(more or {})
        self._heap = f"-Xmx{heap_mb}m"
        self._outlives_us = outlives_us
        self._process: subprocess.Popen[bytes] | None = None
        self.bootstrap = f"{HOST}:{self._ports.plain}"
        self.sasl_ssl = f"{HOST}:{self._ports.sasl_ssl}"
        self.ssl = f"{HOST}:{self._ports.ssl}"

    @property
    def pid(self) -> int:
        """The process id of the running node."""
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """True between a start and a stop or kill by us."""
        return self._process is not None

    def start(self) -> None:
        """Start the node and wait until it serves; raises BrokerError with the log's last lines."""
        assert self._process is None, "already started"
        config = self.folder / "server.properties"
        if not config.exists():
            self._format(config)
        command = [
            java(),
            self._heap,
            "-XX:+UseSerialGC",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
        ]
        command += ["-cp", class_path(), "kafka.Kafka", str(config)]
        if not self._outlives_us and (setpriv := shutil.which("setpriv")):
            command = [setpriv, "--pdeathsig", "KILL", *command]  # even if the tests are killed
        with self.log_file.open("ab") as log:
            start = log.tell()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        self._await_ready(start)

    def stop(self) -> None:
        """End the node in order; kill it when that takes too long."""
        process = self._running()
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._process = None

    def kill(self) -> None:
        """End the node as a power cut would (SIGKILL)."""
        process = self._running()
        process.kill()
        process.wait()
        self._process = None

    def freeze(self) -> None:
        """Stop the node's clock: it keeps its connections and answers nothing."""
        self._running().send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen node go on."""
        self._running().send_signal(signal.SIGCONT)

    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, "not started"
        return self._process

    def _format(self, config: Path) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = properties(self._ports, self.log_dir, self._security, self._more)
        text = "".join(f"{name}={value}\n" for name, value in lines.items())
        config.touch(mode=0o600)
        config.write_text(text, encoding="utf-8")
        cluster = "bleedwatchtestkafka000"  # 22 characters of base64: 16 bytes
        arguments = ["format", "--cluster-id", cluster, "--config", str(config)]
        if self._security is not None:
            arguments += _scram_users(self._security)
        command = [java(), QUICK_JVM, "-cp", class_path()]
        command += ["kafka.tools.StorageTool", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            config.unlink()
            raise BrokerError(
                f"Kafka's storage could not be made: {done.stderr[-500:]}",
                where=str(self.folder),
                hint="Kafka 4 needs Java 17 or later and a folder that it may write to",
            )

    def _await_ready(self, start: int) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        process = self._running()
        while True:
            with self.log_file.open("rb") as log:
                log.seek(start)
                text = log.read().decode(errors="replace")
            if READY in text:
                return
            if process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                tail = " | ".join(text.splitlines()[-5:])
                raise BrokerError(
                    f"Kafka did not start: {tail[-800:]}",
                    where=str(self.log_file),
                    hint="Kafka 4 needs Java 17 or later, and about 600 MB of memory",
                )
            time.sleep(0.05)


@contextlib.contextmanager
def running(
    folder: Path,
    *,
    security: Security | None = None,
    more: Mapping[str, str] | None = None,
    log_dir: Path | None = None,
) -> Iterator[KafkaServer]:
    """Run a node for the time of a `with` block."""
    server = KafkaServer(folder, security=security, more=more, log_dir=log_dir)
    server.start()
    try:
        yield server
    finally:
        if server.is_running:
            server.stop()


def _scram_users(security: Security) -> Sequence[str]:
    secret = f"[name={security.user},password={security.password}]"
    return [f"--add-scram={kind}={secret}" for kind in ("SCRAM-SHA-256", "SCRAM-SHA-512")]


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]
