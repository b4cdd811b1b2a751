"""Token ids of one text or of a list, for its owner; neither goes anywhere from here."""

from pathlib import Path
from typing import Final

import msgspec

from detector.errors import InputError, UsageError
from ingest.limits import MAX_SIDE_TOKENS

MAX_BYTES: Final = 64 * 1024 * 1024
"""Larger than any list of so many tokens as a request may have."""

MAX_TEXT_BYTES: Final = 8 * 1024 * 1024
"""Some two million tokens. Tokenizers take 130 bytes of memory for each byte of text (measured)."""

TOKENIZER: Final = "tokenizer.json"
"""The file in the folder of a model."""


def listed_ids(path: str) -> list[int]:
    """Return the ids of a JSON list; raises InputError for another file."""
    content = _content(path)
    try:
        ids = msgspec.json.decode(content, type=list[int])
    except (msgspec.MsgspecError, RecursionError):
        # the library's message may hold what the file does
        raise InputError(
            "the file is no JSON list of token ids", where=path, hint="write [12, 34, ...]"
        ) from None
    return _bounded(ids, path)


def text_ids(path: str, tokenizer: str) -> list[int]:
    """Return the ids that a tokenizer gives a text, without any that it would add.

    `tokenizer` is a `tokenizer.json` or the folder that holds it. Raises UsageError without the
    library, InputError for a file that cannot be used.
    """
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 - an optional package
    except ModuleNotFoundError:
        raise UsageError(
            "a text needs the library tokenizers, which is not installed",
            where="--text",
            hint="pip install 'bleedwatch[verify]', or give token ids with --ids",
        ) from None
    file = Path(tokenizer)
    file = file / TOKENIZER if file.is_dir() else file
    try:
        text = _content(path, most=MAX_TEXT_BYTES).decode()
    except UnicodeDecodeError:
        raise InputError("the text is not UTF-8", where=path, hint="convert it first") from None
    try:
        known = Tokenizer.from_file(str(file))
    except Exception as error:  # noqa: BLE001 - the library raises no narrower one
        raise InputError(
            f"the tokenizer cannot be used ({type(error).__name__})",
            where=str(file),
            hint=f"name the {TOKENIZER} of the model that served the request",
        ) from None
    try:
        ids = known.encode(text, add_special_tokens=False).ids
    except Exception as error:  # noqa: BLE001 - the library raises no narrower one
        raise InputError(
            f"the tokenizer cannot read the text ({type(error).__name__})",
            where=path,
            hint=f"is {file} that of the model that served the request?",
        ) from None
    return _bounded(list(ids), path)


def _content(path: str, *, most: int = MAX_BYTES) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise InputError(f"cannot read it: {reason}", where=path) from None
    if len(content) > most:
        raise InputError(
            f"larger than {most >> 20} MiB", where=path, hint="cut it to what is in question"
        )
    return content


def _bounded(ids: list[int], path: str) -> list[int]:
    if len(ids) > MAX_SIDE_TOKENS:
        raise InputError(
            f"more than {MAX_SIDE_TOKENS:,} tokens",
            where=path,
            hint="cut it to what is in question",
        )
    return ids
