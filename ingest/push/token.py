"""The bearer token of a port: on the first line of a file, long enough to be no guess."""

from pathlib import Path
from typing import Final

from detector.errors import SettingsError

SHORTEST: Final = 16
"""64 bits as hexadecimal digits: nobody guesses that over a network."""


def read_token(path: str | None, *, where: str = "push.token_file") -> bytes | None:
    """Return the token, None without a file; raises SettingsError if the file holds none."""
    if path is None:
        return None
    hint = f"write a random token of {SHORTEST} characters or more to it"
    try:
        token = Path(path).read_bytes().split(b"\n", 1)[0].strip()
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise SettingsError(f"{path} cannot be read: {reason}", where=where, hint=hint) from None
    if len(token) < SHORTEST or not token.isascii():
        raise SettingsError(f"{path} holds no token, or a short one", where=where, hint=hint)
    return token
