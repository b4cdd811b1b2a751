"""The checkpoint of a sidecar: which files it has read how far, on disk before it is relied on.

Holds places, times, names of files and of requests; nothing that was said. Written to a new file,
synced and renamed, so a crash leaves the old one or the new one.
"""

import fcntl
import os
import secrets
from pathlib import Path
from typing import Final

import msgspec

from detector.errors import InputError
from ingest.folder_sync import sync_folder
from ingest.tail.identity import SALT_BYTES
from ingest.tail.siblings import FileMark

VERSION: Final = 1


class HadRequest(msgspec.Struct, frozen=True, array_like=True):
    """A request that is acknowledged though a line of it lies above the place to read on from."""

    request_id: str
    last_line: int


class LogMark(msgspec.Struct, frozen=True):
    """One log: `position` counts bytes since it was first followed, `mark` is where that is now."""

    name: str
    position: int
    mark: FileMark
    had: tuple[HadRequest, ...] = ()
    version: tuple[int, int] | None = None
    """The engine's version, which it tells once, when it starts; None if it is not needed."""


class _File(msgspec.Struct):
    version: int
    salt: str
    logs: tuple[LogMark, ...]


class CheckpointFile:
    """The checkpoint at a path, locked for this process until it is closed.

    Raises InputError if the folder is not there or may not be written to, if another process has
    the file, or if it is no checkpoint of this version.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        try:
            self._lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _cannot(path, error) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = self._read()
        except BlockingIOError:
            os.close(self._lock)
            raise InputError(
                "another process has this checkpoint",
                where=path,
                hint="give each sidecar a checkpoint of its own",
            ) from None
        except BaseException:
            os.close(self._lock)
            raise
        self.salt = secrets.token_bytes(SALT_BYTES) if held is None else bytes.fromhex(held.salt)
        self.logs = {} if held is None else {log.name: log for log in held.logs}

    def write(self, logs: dict[str, LogMark]) -> None:
        """Replace the checkpoint; on disk when this returns. Raises InputError."""
        content = msgspec.json.encode(_File(VERSION, self.salt.hex(), tuple(logs.values())))
        fresh = f"{self._path}.new"
        try:
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self._path)
            sync_folder(self._path.parent)
        except OSError as error:
            raise _cannot(str(self._path), error) from None
        self.logs = logs

    def close(self) -> None:
        """Let others have it."""
        os.close(self._lock)

    def _read(self) -> _File | None:
        try:
            held = msgspec.json.decode(self._path.read_bytes(), type=_File)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _cannot(str(self._path), error) from None
        except (msgspec.DecodeError, RecursionError):
            held = None
        if held is None or held.version != VERSION or len(held.salt) != 2 * SALT_BYTES:
            raise InputError(
                "is no checkpoint of this version of bleedwatch",
                where=str(self._path),
                hint="move it away: reading begins anew then, and repeats are told apart by id",
            )
        return held


def _cannot(path: str, error: OSError) -> InputError:
    reason = (error.strerror or type(error).__name__).lower()
    return InputError(
        f"the checkpoint cannot be read or written: {reason}",
        where=path,
        hint="set sidecar.checkpoint_file to a file in a folder that this user may write to",
    )
