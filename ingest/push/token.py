"""The bearer token of a port: on the first line of a file, long enough to be no guess."""

from pathlib import Path
from typing import Final

from detector.errors import SettingsError

SHORTEST: Final = 16
"""64 bits as hexadecimal digits: nobody guesses that over a network."""

MAX_BYTES: Final = 4096
"""What is looked at of the file."""


def read_token(path: str | None, *, where: str = "push.token_file") -> bytes | None:
    """Return the token, None without a file; raises SettingsError if the file holds none.

    The path is not repeated: it may be the token itself, written in the wrong place.
    """
    if path is None:
        return None
    hint = f"write a random token of {SHORTEST} characters or more to it"
    try:
        with Path(path).open("rb") as file:
            token = file.read(MAX_BYTES).split(b"\n", 1)[0].strip()
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "not a path").lower()
        message = f"the token cannot be read: {reason}"
        raise SettingsError(message, where=where, hint=hint) from None
    if len(token) < SHORTEST or not token.isascii():
        raise SettingsError("the file holds no token, or a short one", where=where, hint=hint)
    return token
