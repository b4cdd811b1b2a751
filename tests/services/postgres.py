"""A real PostgreSQL as a child process, on a free port of 127.0.0.1, with a database for each test.

Its files lie in a folder of their own and are gone when the test run ends, which also ends the
server if it is killed. It refuses to run as root, so for root it runs as nobody.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg
import pytest

from tests.services.packages import program
from tests.services.ports import free_port

USER: Final = "bleedwatch"
PASSWORD: Final = "tests-only"
BINARIES: Final = ("/usr/lib/postgresql/*/bin",)
PACKAGE: Final = "postgresql"

START_TIMEOUT_S: Final = 120
"""A start takes a second on an idle core."""

MANY: Final = "max_connections=50"

FAST: Final = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", MANY)
"""Nothing has to survive a failure here."""

SURVIVES_KILLS: Final = ("fsync=off", MANY)
"""What was committed outlives the server, and only a power failure would lose it."""


class PostgresServer:
    """One server; `url` names a database of it, whose password is in `password_file`.

    It can be started again after `stop` or `kill`: port and data stay.
    """

    def __init__(self, folder: Path, *, options: Sequence[str] = FAST) -> None:
        self.folder = folder
        self._options = options
        self.password_file = folder / "password"
        self.port = free_port()
        self._data = folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._made = 0

    @property
    def is_running(self) -> bool:
        """True between a start and a stop or kill by us."""
        return self._process is not None

    def url(self, database: str) -> str:
        """Return the URL of a database, without the password."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Make an empty database and return its URL."""
        self._made += 1
        name = f"test{self._made}"
        with self._connected() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        if not self._data.exists():
            self._initialise()
        words = [f"-c{option}" for option in self._options]
        words += ["-h", "127.0.0.1", "-p", str(self.port), "-cunix_socket_directories="]
        command = [program("postgres", PACKAGE, folders=BINARIES), "-D", str(self._data), *words]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                _as_nobody(command, "--pdeathsig=INT"),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._await()

    def stop(self) -> None:
        """End the server at once: PostgreSQL's fast shutdown."""
        assert self._process is not None, "not started"
        self._process.send_signal(signal.SIGINT)
        self._process.wait(START_TIMEOUT_S)
        self._process = None

    def kill(self) -> None:
        """End all its processes as the kernel would (SIGKILL): the next start recovers."""
        assert self._process is not None, "not started"
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        self._process.kill()
        self._process.wait()
        self._process = None
        for child in children:  # they hold the shared memory, which keeps another from starting
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        deadline = time.monotonic() + START_TIMEOUT_S
        while any(map(_holds_memory, children)) and time.monotonic() < deadline:
            time.sleep(0.01)

    def _initialise(self) -> None:
        self.password_file.write_text(f"{PASSWORD}\n")
        self.password_file.chmod(0o640)
        if os.geteuid() == 0:
            shutil.chown(self.folder, "nobody")
            shutil.chown(self.password_file, "nobody")
        words = ["-D", str(self._data), "-U", USER, f"--pwfile={self.password_file}"]
        words += ["--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync"]
        command = [program("initdb", PACKAGE, folders=BINARIES), *words]
        done = subprocess.run(
            _as_nobody(command), capture_output=True, timeout=START_TIMEOUT_S, check=False
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")

    def _await(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            log = (self.folder / "log").read_text(errors="replace")[-2000:]
            assert self._process.poll() is None, f"PostgreSQL ended: {log}"
            assert time.monotonic() < deadline, f"PostgreSQL does not answer: {log}"
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            with self._connected():
                return True
        except psycopg.OperationalError:
            return False

    @contextmanager
    def _connected(self) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
        with psycopg.connect(
            self.url("postgres"), password=PASSWORD, autocommit=True, connect_timeout=5
        ) as connection:
            yield connection


@contextmanager
def running(*, options: Sequence[str] = FAST) -> Iterator[PostgresServer]:
    """Run a server for the time of a `with` block."""
    # Not below pytest's own folders: nobody else may enter those.
    with tempfile.TemporaryDirectory(prefix="bleedwatch-postgres-") as folder:
        server = PostgresServer(Path(folder), options=options)
        server.start()
        try:
            yield server
        finally:
            if server.is_running:
                server.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Give a server that all tests share: make a `new_database` of it."""
    with running() as server:
        yield server


def _holds_memory(pid: str) -> bool:
    """True while a process has not ended; one that nobody waited for has."""
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def _as_nobody(command: list[str], *options: str) -> list[str]:
    """Return the command as a user that it may run as; `options` are further ones of setpriv."""
    if os.geteuid() == 0:
        options = ("--reuid=nobody", "--clear-groups", *options)
    return [program("setpriv", "util-linux"), *options, "--", *command] if options else command
