"""Of a log that is ours, only the very file that was read is freed: no link, copy or stranger."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.tail.hygiene import delete_read, free_read, punch_hole
from ingest.tail.opened import PlainFile

BLOCK = 64 * 1024
CONTENT = b"x" * BLOCK
SALT = bytes(16)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[PlainFile]:
    """Give a log that is read to its end."""
    path = tmp_path / "engine.log"
    path.write_bytes(CONTENT)
    opened = PlainFile(path, salt=SALT)
    while opened.read():
        pass
    yield opened
    opened.close()


def test_what_was_read_is_freed(file: PlainFile) -> None:
    assert not free_read(file, BLOCK)
    assert file.path.read_bytes() == bytes(BLOCK)
    assert not file.is_truncated()


@pytest.mark.parametrize("below", [0, -1])
def test_nothing_read_is_nothing_to_free(file: PlainFile, below: int) -> None:
    assert not free_read(file, below)
    assert file.path.read_bytes() == CONTENT


def test_a_file_with_a_second_name_is_left_alone(file: PlainFile, tmp_path: Path) -> None:
    os.link(file.path, tmp_path / "another")
    assert not free_read(file, BLOCK)
    assert file.path.read_bytes() == CONTENT


def test_a_file_that_was_replaced_is_left_alone(file: PlainFile, tmp_path: Path) -> None:
    moved = file.path.rename(tmp_path / "moved")
    file.path.write_bytes(CONTENT)
    assert not free_read(file, BLOCK)
    assert (file.path.read_bytes(), moved.read_bytes()) == (CONTENT, CONTENT)


def test_a_link_in_its_place_is_not_followed(file: PlainFile, tmp_path: Path) -> None:
    moved = file.path.rename(tmp_path / "moved")
    file.path.symlink_to(moved)
    assert not free_read(file, BLOCK)
    assert moved.read_bytes() == CONTENT


def test_a_file_without_a_name_is_left_alone(file: PlainFile) -> None:
    file.path.unlink()
    assert not free_read(file, BLOCK)
    assert file.size == BLOCK


def test_a_descriptor_that_may_not_write_punches_no_hole(file: PlainFile) -> None:
    assert not punch_hole(file.descriptor, BLOCK)
    assert file.path.read_bytes() == CONTENT


def test_of_rotated_files_only_the_one_that_was_read_is_deleted(
    file: PlainFile, tmp_path: Path
) -> None:
    identity = file.identity()
    moved = file.path.rename(tmp_path / "engine.log.1")
    other = tmp_path / "engine.log.2"
    other.write_bytes(b"another")
    delete_read(identity, live=tmp_path / "engine.log")
    assert not moved.exists()
    assert other.read_bytes() == b"another"


def test_what_lies_beside_a_links_target_is_not_deleted(file: PlainFile, tmp_path: Path) -> None:
    identity = file.identity()
    (tmp_path / "elsewhere").mkdir()
    moved = file.path.rename(tmp_path / "elsewhere" / "engine.log.1")
    live = tmp_path / "engine.log"
    (tmp_path / "elsewhere" / "engine.log").write_bytes(b"")
    live.symlink_to(tmp_path / "elsewhere" / "engine.log")
    delete_read(identity, live=live)
    assert moved.read_bytes() == CONTENT
