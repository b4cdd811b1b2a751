"""The YAML reader: what values mean, which line they stand on, what is refused."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.config.yaml_file import parse_scalar, parse_yaml, read_yaml
from detector.errors import SettingsError


def test_values_follow_yaml_1_2() -> None:
    text = "a: no\nb: 12:30\nc: 010\nd: 1_000\ne: 1e3\nf: .5\ng: true\nh: ~\ni: 2024-01-01\n1: x\n"
    values, lines = parse_yaml(text, "f")
    assert values == {
        "a": "no", "b": "12:30", "c": "010", "d": 1000, "e": 1000.0, "f": 0.5, "g": True,
        "h": None, "i": "2024-01-01", "1": "x",
    }  # fmt: skip
    assert lines[("d",)] == 4


def test_lines_of_nested_keys_and_items() -> None:
    _, lines = parse_yaml("a:\n  b:\n    - c: 1\n    -\n      d: 2\n", "f")
    assert lines == {
        ("a",): 1,
        ("a", "b"): 2,
        ("a", "b", 0): 3,
        ("a", "b", 0, "c"): 3,
        ("a", "b", 1): 5,
        ("a", "b", 1, "d"): 5,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "f:3: `a` is set twice, first on line 1"),
        ("x:\n  a: 1\n  a: 2\n", "f:3: `a` is set twice, first on line 2"),
        ("a: [1\n", "f:2:1: not valid YAML"),
        ("a: 1\n b: 2\n", "f:2:3: not valid YAML"),
        ("\ta: 1\n", "f:1:1: not valid YAML"),
        ("- 1\n", "f:1: the file holds a list"),
        ("\ntext\n", "f:2: the file holds a single value"),
        ("a: &x 1\nb: *x\n", "f:1: anchors and aliases"),
        ("a: !!python/object/apply:os.system [x]\n", "f:1: tags"),
        ("a: !!python/name:os.system x\n", "f:1: tags"),
        ("b: 1\na: !!bool x\n", "f:2: tags"),
        ("a: !!timestamp x\n", "f:1: tags"),
        ("? [a]\n: 1\n", "f:1: a name must be plain text"),
        ("a: 1\n---\nb: 2\n", "f:2:1: not valid YAML"),
        ("a: 1\nb: \x07\n", "f:2: not a text file"),
        ("a: " + "[" * 500_000, "f:1:103: not valid YAML: nested deeper than 100 levels"),
    ],
)
def test_refused(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_yaml(text, "f")
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a: 1\nb: \xff\xfe\n", "{file}:2: not a text file"),
        (b"\x28\xb5\x2f\xfd\x00\x00", "{file}:1: not a text file"),
        (b"a: 1 #" + b"x" * (1024 * 1024), "{file}: larger than 1 MiB"),
    ],
)
def test_files_of_another_kind(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_bytes(data)
    with pytest.raises(SettingsError) as caught:
        read_yaml(str(file))
    assert str(caught.value).startswith(said.format(file=file))


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\r\n")
    assert read_yaml(str(file))[0] == {"a": 1}


@given(st.text(max_size=60))
def test_any_text_is_values_or_a_settings_error(text: str) -> None:
    parse_scalar(text)
    with suppress(SettingsError):
        parse_yaml(text, "f")
