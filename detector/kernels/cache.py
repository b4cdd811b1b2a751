"""Where compiled kernels are kept: a folder of their own for each state of the sources.

numba looks only at the file of a kernel, not at the kernels it calls, and gives up where it can
write neither beside the sources nor into the home folder. So the folder is named by the digest of
all kernel sources, and where nothing can be kept the kernels are compiled for this process alone.
Kernels take `njit` from here, so that this is settled before anything is compiled.
"""

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from numba import njit
from numba.core.config import reload_config

__all__ = ["njit"]

VARIABLE = "NUMBA_CACHE_DIR"

_SOURCES = Path(__file__).parent


def folder() -> Path:
    """Return the first folder that can be written to; the last resort is removed at exit.

    Never a fixed name in a folder that others can write to: what is cached is code.
    """
    for candidate in _candidates():
        if _is_writable(candidate):
            return candidate
    passing = Path(tempfile.mkdtemp(prefix="bleedwatch-kernels-"))
    atexit.register(shutil.rmtree, passing, ignore_errors=True)
    return passing


def _candidates() -> Iterator[Path]:
    if given := os.environ.get(VARIABLE):
        yield Path(given)
    name = f"kernels-{_digest()}"
    yield _SOURCES / "__pycache__" / name
    home = os.environ.get("HOME", "")
    cache = os.environ.get("XDG_CACHE_HOME") or (os.path.join(home, ".cache") if home else "")
    if os.path.isabs(cache):
        yield Path(cache) / "bleedwatch" / name


def _digest() -> str:
    texts = (path.read_bytes() for path in sorted(_SOURCES.glob("*.py")))
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16]


def _is_writable(candidate: Path) -> bool:
    try:
        candidate.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=candidate):
            return True
    except OSError:
        return False


os.environ[VARIABLE] = str(folder())
reload_config()
