"""Pattern files are checked when they are read, and every fault is told with its line."""

from pathlib import Path

import pytest

from detector.config.root import Settings
from detector.errors import SettingsError
from detector.signals import BUILT_IN, built_in, parse_patterns, signals_of
from ingest.schema_records import EventKind
from ingest.signals.settings import SignalSettings

OWN = """\
version: 1
engine: mine
patterns:
  - name: mine-lost
    kind: transfer_failed
    detail: lost
    start: "Lost blocks of "
    match: 'Lost blocks of (?P<request_id>\\S{1,128}+)'
"""

LINE = b"[2026-11-29 17:54:42] Lost blocks of r-1"


def settings(*files: Path, off: tuple[str, ...] = ()) -> Settings:
    return Settings(signals=SignalSettings(files=tuple(map(str, files)), off=off))


def written(folder: Path, text: str, name: str = "own.yaml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_an_operators_file_adds_patterns(tmp_path: Path) -> None:
    look = signals_of(settings(written(tmp_path, OWN)))("e0", "pool")
    got = look(LINE)
    assert got is not None
    assert (got.kind, got.detail, got.request_id) == (EventKind.TRANSFER_FAILED, "lost", "r-1")
    assert (got.engine, got.kv_pool) == ("e0", "pool")
    assert signals_of(Settings())("e0", "pool")(LINE) is None


def test_an_operators_file_is_tried_before_the_programs(tmp_path: Path) -> None:
    text = OWN.replace("Lost blocks of ", "KV checksum mismatch ")
    look = signals_of(settings(written(tmp_path, text)))("e0", None)
    got = look(b"[2026-11-29 17:54:42] KV checksum mismatch req=r-1 bootstrap_room=5 expected=0x1")
    assert got is not None
    assert (got.kind, got.detail) == (EventKind.TRANSFER_FAILED, "lost")


def test_a_pattern_can_be_turned_off() -> None:
    line = b"[2026-11-29 17:54:42] Cache not flushed because there are pending requests. #queue"
    assert signals_of(Settings())("e0", None)(line) is not None
    assert signals_of(settings(off=("sglang-flush-pending",)))("e0", None)(line) is None
    with pytest.raises(SettingsError, match="no pattern has the name mine"):
        signals_of(settings(off=("mine",)))


@pytest.mark.parametrize(
    ("line", "said", "before", "after"),
    [
        (1, "version", "version: 1", "version: 2"),
        (2, "engine", "engine: mine", "engine: My Engine"),
        (4, "name", "mine-lost", "Mine Lost"),
        (5, "kind", "transfer_failed", "lost"),
        (6, "detail", "detail: lost", "detail: tenant text"),
        (7, "start", '"Lost blocks of "', '"Los"'),
        (7, "start", '"Lost blocks of "', '"Lost blöcke"'),
        (8, "groups", "request_id", "prompt_text"),
        (8, "repeats", r"\S{1,128}+", ".*.*.*x"),
        (8, "not supported", r"\S{1,128}+", "(?:a+)+"),
        (8, "not supported", r"\S{1,128}+", r"a)(?=b"),
        (8, "malformed", r"(?P<request_id>\S{1,128}+)", "(a"),
        (8, "longer", r"\S{1,128}+", "a" * 300),
        (8, "unknown", "    match", "    text: x\n    match"),
    ],
)
def test_a_fault_is_told_with_its_line(line: int, said: str, before: str, after: str) -> None:
    assert before in OWN
    with pytest.raises(SettingsError) as caught:
        parse_patterns(OWN.replace(before, after), "own.yaml")
    place, _, rest = str(caught.value).partition(" ")
    assert place == f"own.yaml:{line}:"
    assert said in rest


def test_names_are_unique_and_nothing_is_empty() -> None:
    twice = OWN + OWN[OWN.index("  - name") :]
    with pytest.raises(SettingsError, match="same name: mine-lost"):
        parse_patterns(twice, "own.yaml")
    with pytest.raises(SettingsError, match=r"patterns"):
        parse_patterns("version: 1\nengine: mine\npatterns: []\n", "own.yaml")
    with pytest.raises(SettingsError, match="`patterns` is required"):
        parse_patterns("version: 1\nengine: mine\n", "own.yaml")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for file in (tmp_path / "absent.yaml", tmp_path, written(tmp_path, "x" * 2**20 + "x")):
        with pytest.raises(SettingsError) as caught:
            signals_of(settings(file))
        assert str(file) in str(caught.value)
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(SettingsError, match="not a text file"):
        signals_of(settings(tmp_path / "bytes.yaml"))


def test_the_programs_own_names_are_unique_over_all_files() -> None:
    names = [one.name for engine in BUILT_IN for one in built_in(engine).patterns]
    assert len(names) == len(set(names))


def test_logs_do_not_share_what_they_remember() -> None:
    make = signals_of(Settings())
    line = b"(APIServer pid=1) INFO 11-29 17:29:57 [async_llm.py:1] Request a aborted."
    assert make("e0", None)(line) is not None
    assert make("e0", None)(line) is not None
