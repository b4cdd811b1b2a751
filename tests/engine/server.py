"""A genuine vLLM on the loopback address, with its request log in a file.

`served` starts one and ends it; `make test-engine` makes its environment and names its folder.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from tests.e2e.program import environment
from tests.engine.fault import KEEP_EVERY, KEPT
from tests.services.ports import free_port

ENVIRONMENT: Final = "BLEEDWATCH_TEST_ENGINE"
"""The folder of the environment that holds the engine."""

MODEL: Final = "tiny"
BLOCK_TOKENS: Final = 32
BLOCKS: Final = 48
"""Of which one is the null block, that no request ever gets."""

START_S: Final = 600.0
"""It starts in half a minute; on a busy machine, with nothing in its caches, it takes many."""

END_S: Final = 30.0
ROOT: Final = Path(__file__).parents[2]

_FLAGS: Final = (
    *("--served-model-name", MODEL, "--load-format", "dummy", "--dtype", "bfloat16"),
    *("--max-model-len", "512", "--max-num-seqs", "8", "--enforce-eager", "--seed", "1"),
    *("--block-size", str(BLOCK_TOKENS), "--num-gpu-blocks-override", str(BLOCKS)),
    *("--enable-log-requests", "--enable-log-outputs"),
)
"""A small pool, and what docs/engine-logs.md asks for."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A server that answers. `kept` is where a fault is written down, if it has one."""

    url: str
    log: Path
    kept: Path
    process: "subprocess.Popen[bytes]"

    def client(self) -> httpx.Client:
        """Return a client; answers of a small model on a busy machine take seconds."""
        return httpx.Client(base_url=self.url, timeout=60.0)


def python() -> Path:
    """Return the interpreter of the engine's environment."""
    return Path(os.environ[ENVIRONMENT]).resolve() / "bin" / "python"


def make_model(folder: Path) -> Path:
    """Make the model in a folder; it takes a second."""
    subprocess.run([python(), ROOT / "tests/engine/model.py", folder], check=True, timeout=120)
    return folder


@contextmanager
def served(
    model: Path, log: Path, *, keeps_every: int | None = None, more: Sequence[str] = ()
) -> Iterator[Engine]:
    """Serve a model for the time of a `with` block; all that the engine says goes to `log`.

    `keeps_every` puts in a fault: the blocks of every so many-th request are never given back.
    """
    port, kept = free_port(), log.with_name("kept.jsonl")
    flags = [*_FLAGS, *more, "--host", "127.0.0.1", "--port", str(port)]
    faults: dict[str, str] = {}
    if keeps_every is not None:
        flags += ["--scheduler-cls", "tests.engine.keeping.KeepingScheduler"]
        faults = {KEEP_EVERY: str(keeps_every), KEPT: str(kept)}
    with log.open("ab") as out:
        process = subprocess.Popen(
            [python(), "-m", "vllm.entrypoints.cli.main", "serve", model, *flags],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=_variables(faults),
            start_new_session=True,
        )
    engine = Engine(f"http://127.0.0.1:{port}", log, kept, process)
    try:
        _await(engine)
        yield engine
    finally:
        _end(process)


def _variables(faults: dict[str, str]) -> dict[str, str]:
    """Return its environment: no hub, no statistics sent, one core, the log as documented."""
    return environment(
        PYTHONPATH=str(ROOT),
        VLLM_LOGGING_LEVEL="DEBUG",
        VLLM_CPU_KVCACHE_SPACE="1",
        VLLM_CPU_OMP_THREADS_BIND="nobind",
        OMP_NUM_THREADS="1",
        VLLM_NO_USAGE_STATS="1",
        VLLM_CACHE_ROOT=str(python().parents[1] / "cache"),
        HF_HUB_OFFLINE="1",
        TZ="UTC",
        **faults,
    )


def _await(engine: Engine) -> None:
    until = time.monotonic() + START_S
    while True:
        assert engine.process.poll() is None, _end_of(engine.log)
        try:
            if httpx.get(f"{engine.url}/health", timeout=5.0).status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < until, _end_of(engine.log)
        time.sleep(0.2)


def _end_of(log: Path) -> str:
    return log.read_bytes()[-4000:].decode(errors="replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the server and the processes that it has started."""
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
