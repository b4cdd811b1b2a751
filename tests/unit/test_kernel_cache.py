"""Where compiled kernels are kept: never where others write, and somewhere in any case."""

from pathlib import Path

import pytest

from detector.kernels import cache


@pytest.fixture(autouse=True)
def _nothing_is_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = tmp_path / "installed"
    sources.mkdir()
    (sources / "one.py").write_text("a = 1")
    (sources / "__pycache__").touch()  # no folder can be made in it, not even by root
    monkeypatch.setattr(cache, "_SOURCES", sources)
    for name in (cache.VARIABLE, "HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_a_folder_that_the_user_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "named"))
    assert cache.folder() == tmp_path / "named"
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "installed" / "one.py" / "x"))
    assert cache.folder().name.startswith("bleedwatch-kernels-")


def test_beside_the_sources_then_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.folder().parent == tmp_path / ".cache" / "bleedwatch"
    (tmp_path / "installed" / "__pycache__").unlink()
    assert cache.folder().parent == tmp_path / "installed" / "__pycache__"


def test_every_state_of_the_sources_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    before = cache.folder()
    (tmp_path / "installed" / "one.py").write_text("a = 2")
    assert cache.folder() != before


def test_nowhere_is_a_private_folder_for_this_process() -> None:
    first, second = cache.folder(), cache.folder()
    assert first != second
    assert first.stat().st_mode & 0o777 == 0o700
