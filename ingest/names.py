"""What may name a tenant, a request, an engine, a KV pool or a model."""

from typing import Annotated

from pydantic import AfterValidator, Field

from ingest.limits import MAX_TEXT_CHARS


def is_name(text: str) -> bool:
    """Tell whether a text may be a name: not empty, not too long, all of it printable."""
    return 0 < len(text) <= MAX_TEXT_CHARS and text.isprintable()


def made_name(text: str) -> str:
    """Return a name for what has none of its own, such as a file: the rest is escaped, cut off."""
    shown = (
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
    return "".join(shown)[:MAX_TEXT_CHARS]


def _checked(text: str) -> str:
    if not is_name(text):
        raise ValueError("a name holds printable characters only")
    return text


Name = Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARS), AfterValidator(_checked)]
"""A name in the settings."""
