"""Durations and sizes as people write them: "90s", "1h30m", "64MiB"."""

import re
from fractions import Fraction

_MILLISECONDS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

_BYTES = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}

_NUMBER = r"([0-9]{1,18}(?:[.][0-9]{1,9})?)"
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_DURATION = re.compile(rf"(?:{_NUMBER}(?:ms|s|m|h|d))+")
_DURATION_PART = re.compile(rf"{_NUMBER}(ms|s|m|h|d)")
_SIZE = re.compile(rf"{_NUMBER} ?([kmgt]?i?b)", re.IGNORECASE)


def parse_duration_ms(text: str) -> int:
    """Milliseconds of "90s", "1h30m", "1.5h" or a bare number of milliseconds.

    Raises ValueError, with the accepted forms in its message, for anything else.
    """
    text = text.strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    if not _DURATION.fullmatch(text):
        raise ValueError('must be milliseconds or a duration such as "90s", "5m" or "1h30m"')
    parts = _DURATION_PART.findall(text)
    return _integer(
        sum((Fraction(number) * _MILLISECONDS[unit] for number, unit in parts), Fraction(0)),
        "milliseconds",
    )


def parse_size_bytes(text: str) -> int:
    """Bytes of "64MiB", "1.5 GB" or a bare number of bytes; KB is 1000 bytes, KiB is 1024.

    Raises ValueError, with the accepted forms in its message, for anything else.
    """
    text = text.strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    found = _SIZE.fullmatch(text)
    if not found or found[2].lower() not in _BYTES:
        raise ValueError('must be bytes or a size such as "512KiB", "64MiB" or "2GB"')
    return _integer(Fraction(found[1]) * _BYTES[found[2].lower()], "bytes")


def _integer(value: Fraction, unit: str) -> int:
    if value.denominator != 1:
        raise ValueError(f"must be a whole number of {unit}")
    return int(value)
