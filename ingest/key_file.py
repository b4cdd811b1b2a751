"""The deployment secret on disk: 64 hex digits in a file that only its owner can read."""

import os
import re
import secrets
import shlex
import stat
from pathlib import Path
from typing import Final

from detector.errors import KeyFileError
from detector.sketch.token_table import SECRET_BYTES, Secret

MAX_FILE_BYTES: Final = 4096
"""A key file is 65 bytes; anything of another size order is the wrong file."""

MIN_DISTINCT_BYTES: Final = 8
"""A random secret has fewer than 8 distinct bytes with probability below 2^-100: it is a
placeholder such as zeros."""

_SPELLED = re.compile(rf"\s*[0-9a-fA-F]{{{2 * SECRET_BYTES}}}\s*")

_NEW_KEY_HINT = "make one with `bleedwatch key new PATH`"


def load_secret(path: str | Path) -> Secret:
    """Read the secret of a key file; symbolic links are followed, as Kubernetes mounts use them.

    Raises KeyFileError when the file is missing, unreadable, no regular file, readable or writable
    by group or others, or does not hold exactly 32 bytes as hex. Only the group of somebody else's
    file may read it: so Kubernetes mounts a secret of root for a process that is not. The message
    never shows content.
    """
    where = str(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise KeyFileError("no such key file", where=where, hint=_NEW_KEY_HINT) from None
    except (OSError, ValueError) as error:
        raise KeyFileError(
            f"the key file cannot be opened: {_reason(error)}",
            where=where,
            hint="run as the user who owns it",
        ) from None
    try:
        _check_mode(os.fstat(descriptor), where)
        return _parse(os.read(descriptor, MAX_FILE_BYTES), where)
    except OSError as error:
        raise KeyFileError(f"the key file cannot be read: {_reason(error)}", where=where) from None
    finally:
        os.close(descriptor)


def new_secret(path: str | Path) -> Secret:
    """Draw a secret from the system's generator and write it to a new file with mode 0600.

    Raises KeyFileError when the file exists (a secret is never overwritten) or cannot be written.
    """
    value = secrets.token_bytes(SECRET_BYTES)
    where = str(path)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(value.hex().encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            Path(path).unlink()
            raise
    except FileExistsError:
        raise KeyFileError(
            "the key file exists and is not overwritten",
            where=where,
            hint="use it, or choose another path: what another secret hashed never matches",
        ) from None
    except (OSError, ValueError) as error:
        raise KeyFileError(
            f"the key file cannot be written: {_reason(error)}",
            where=where,
            hint="choose a folder that you may write to",
        ) from None
    return Secret(value)


def ephemeral_secret() -> Secret:
    """Draw a secret that is never stored: what it hashed cannot be compared after this process."""
    return Secret(secrets.token_bytes(SECRET_BYTES))


def looks_like_a_secret(text: str) -> bool:
    """Tell a secret where a path belongs, before a message or a table shows it as one."""
    return _SPELLED.fullmatch(text) is not None


def _check_mode(status: os.stat_result, where: str) -> None:
    mode = status.st_mode
    if not stat.S_ISREG(mode):
        raise KeyFileError("the key file is not a regular file", where=where, hint=_NEW_KEY_HINT)
    refused = stat.S_IRWXG | stat.S_IRWXO
    if status.st_uid != os.geteuid():
        refused &= ~stat.S_IRGRP
    if mode & refused:
        raise KeyFileError(
            f"group or others may use the key file (mode {stat.S_IMODE(mode):04o})",
            where=where,
            hint=f"chmod 600 {shlex.quote(where)}",
        )


def _parse(content: bytes, where: str) -> Secret:
    try:
        value = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:
        value = b""
    if len(value) != SECRET_BYTES or len(set(value)) < MIN_DISTINCT_BYTES:
        raise KeyFileError(
            f"the key file does not hold {SECRET_BYTES} random bytes as {2 * SECRET_BYTES} hex "
            "digits",
            where=where,
            hint=_NEW_KEY_HINT,
        )
    return Secret(value)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or "not a valid path"
