"""Files that are written whole: links, rights, rubbish and other people's names beside them."""

import os
from pathlib import Path

import pytest

from detector.errors import InputError
from exporters.whole_file import whole_file


def written(path: Path, text: str = "new") -> None:
    with whole_file(str(path)) as fresh:
        Path(fresh).write_text(text)


def half_written(path: Path) -> None:
    with whole_file(str(path)) as fresh:
        Path(fresh).write_text("half")
        raise OSError(28, "No space left on device")


def test_a_new_file_is_for_its_owner_and_alone(tmp_path: Path) -> None:
    written(tmp_path / "list")
    assert (tmp_path / "list").read_text() == "new"
    assert (tmp_path / "list").stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["list"]


def test_what_is_replaced_keeps_its_rights_and_the_links_to_it(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    written(link)
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_link_that_lies_in_wait_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "list.new").symlink_to(victim)
    written(tmp_path / "list")
    assert victim.read_text() == "mine"


def test_nothing_is_left_when_it_fails(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text("old")
    with pytest.raises(InputError, match="no space left"):
        half_written(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["list"]


@pytest.mark.parametrize("name", ["folder", "none/list", "pipe"])
def test_what_cannot_be_a_file_is_told_by_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(InputError) as error:
        written(tmp_path / name)
    assert str(tmp_path / name) in str(error.value)
    assert sorted(os.listdir(tmp_path)) == before
