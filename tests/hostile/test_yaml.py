"""YAML made to exhaust or to break: each reader answers at once, by values or an error of ours."""

import time
from collections.abc import Callable

import pytest

from detector.advisories.load import check
from detector.check.placed import documents
from detector.config.yaml_file import parse_yaml
from detector.errors import BleedwatchError
from ingest.scrape.mapping import parse_mapping

DEEP = 200_000

SECONDS = 2.0
"""Far above what any takes (0.3 s), far below what each took that was a fault."""


def laughs(levels: int, last: str) -> str:
    """Return aliases that mean 10 to the power of `levels` words, and something that uses them."""
    lines = ["- &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"- &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]" for at in range(1, levels)]
    return "\n".join([*lines, last.format(f"*a{levels - 1}")]) + "\n"


BOMBS = {
    "a deep list": "[" * DEEP,
    "a deep map": "{a: " * DEEP,
    "a deep list that is closed": "[" * 1_500 + "]" * 1_500,
    "deep blocks": "\n".join("  " * at + "a:" for at in range(600)),
    "a billion laughs": laughs(12, "- {}"),
    "a billion laughs as an id": laughs(12, "- {{id: {}}}"),
    "a billion laughs as a mapping": laughs(12, "- {{engine_kind: {}}}").replace("- ", "k: ", 1),
    "a number of many digits": "- id: " + "1" * 5_000,
    "a setting of many digits": "key_file: " + "1" * 5_000,
    "a date that is none": "- published: 2026-13-45",
    "a setting that is no date": "form: 2026-13-45",
    "a program": "- !!python/object/apply:os.system [touch /tmp/never]",
    "a truth that is none": "form: !!bool perhaps",
    "a time that is none": "form: !!timestamp never",
    "bytes that are none": "form: !!binary '!'",
    "a list that holds itself": "&a [*a]",
    "a mapping that holds itself": "&a {id: *a}",
    "an entry that holds itself": "- &a {id: *a}",
    "a merge of a number": "- {<<: 5}",
    "a list as a key": "? [a]\n: b",
    "NUL": 'form: "\\0"',
    "half a character": 'form: "\\ud800"',
}


def _settings(text: str) -> list[str]:
    parse_yaml(text, "file")
    return []


def _mapping(text: str) -> list[str]:
    parse_mapping(text, where="file")
    return []


def _advisories(text: str) -> list[str]:
    return [word for problem in check([("file", text)]) for word in problem]


def _manifest(text: str) -> list[str]:
    documents(text, "file")
    return []


READERS: dict[str, Callable[[str], list[str]]] = {
    "settings": _settings,
    "mapping": _mapping,
    "advisories": _advisories,
    "manifest": _manifest,
}
"""Each returns what it says about a text that it takes."""


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_costs_nothing_and_breaks_nothing(bomb: str, reader: str) -> None:
    began = time.process_time()
    try:
        said = READERS[reader](BOMBS[bomb])
    except BleedwatchError as error:
        said = [str(error)]
    assert time.process_time() - began < SECONDS
    assert max(map(len, said), default=0) < 2_000, "an error does not repeat the bomb"


def test_a_sound_file_is_still_read() -> None:
    assert parse_yaml("a: {b: [1, 2]}\n", "file")[0] == {"a": {"b": [1, 2]}}
    assert [one.word("kind") for one in documents("kind: Pod\n", "file")] == ["Pod"]
    assert check([("file", "[]")]) == []
