"""Durations and sizes as text."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.config.units import parse_duration_ms, parse_size_bytes


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("1.5h", 5_400_000),
        ("250ms", 250),
        ("0.5s", 500),
        ("1d", 86_400_000),
        (" 5m ", 300_000),
        ("300000", 300_000),
        ("-1", -1),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64MiB", 64 * 2**20),
        ("2GB", 2 * 10**9),
        ("1.5 KiB", 1536),
        ("10b", 10),
        ("1tb", 10**12),
        ("7", 7),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size_bytes(text) == size


@pytest.mark.parametrize(
    "text", ["", "s", "5 m", "5x", "-5s", "1.2.3s", "0.0001s", "1e3s", "5m!", "٣m"]
)
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        parse_duration_ms(text)


@pytest.mark.parametrize("text", ["", "MiB", "5ib", "5 megabytes", "-5MB", "0.3b", "1,5GB", "٣MB"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        parse_size_bytes(text)


@given(st.integers(0, 10**9), st.sampled_from(["ms", "s", "m", "h", "d"]))
def test_whole_durations_are_exact(number: int, unit: str) -> None:
    factor = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}[unit]
    assert parse_duration_ms(f"{number}{unit}") == number * factor


@given(st.text(max_size=40))
def test_any_text_is_a_number_or_a_value_error(text: str) -> None:
    for parse in (parse_duration_ms, parse_size_bytes):
        with suppress(ValueError):
            assert isinstance(parse(text), int)
