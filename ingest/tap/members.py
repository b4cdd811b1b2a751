"""The members of a JSON object as bytes: what is not looked at stays exactly as it was written.

Engines write without spaces, and so does `written`; then only what was changed differs.
"""

from typing import Final, TypeVar

import msgspec

Members = dict[str, msgspec.Raw]

NULL: Final = msgspec.Raw(b"null")
TRUE: Final = msgspec.Raw(b"true")

_object: Final = msgspec.json.Decoder(Members)
_objects: Final = msgspec.json.Decoder(list[Members])
_text: Final = msgspec.json.Decoder(str)
_count: Final = msgspec.json.Decoder(int)
_ids: Final = msgspec.json.Decoder(list[int])

_T = TypeVar("_T")

_OFF: Final = (b"null", b"false")


def members(data: "bytes | bytearray | msgspec.Raw") -> Members:
    """Return the members of an object; raises msgspec.DecodeError, UnicodeDecodeError and such."""
    return _object.decode(data)


def objects(value: msgspec.Raw | None) -> list[Members]:
    """Return the objects of a list, none where there is no such list."""
    return _or_none(_objects, value) or []


def text(value: msgspec.Raw | None) -> str | None:
    """Return a text, None for anything else."""
    return _or_none(_text, value)


def number(value: msgspec.Raw | None) -> int | None:
    """Return a whole number, None for anything else."""
    return _or_none(_count, value)


def ids(value: msgspec.Raw | None) -> list[int] | None:
    """Return a list of whole numbers, None for anything else."""
    return _or_none(_ids, value)


def is_off(value: msgspec.Raw | None) -> bool:
    """Tell whether a switch is absent, null or false."""
    return value is None or bytes(value) in _OFF


def is_null(value: msgspec.Raw | None) -> bool:
    """Tell whether a member is absent or null."""
    return value is None or bytes(value) == b"null"


def written(value: object) -> msgspec.Raw:
    """Return a value as JSON without spaces."""
    return msgspec.Raw(msgspec.json.encode(value))


def _or_none(decoder: "msgspec.json.Decoder[_T]", value: msgspec.Raw | None) -> _T | None:
    if value is None:
        return None
    try:
        return decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
