"""Key files: made once with mode 0600, refused when open to others or malformed, never shown."""

import os
import stat
from pathlib import Path

import pytest

from detector.errors import KeyFileError
from ingest.key_file import ephemeral_secret, load_secret, new_secret

GOOD = bytes(range(32)).hex()


def _write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_new_secret_is_read_back_and_only_the_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    made = new_secret(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_secret(path).keys() == made.keys()
    assert len(path.read_text()) == 65


def test_a_secret_is_never_overwritten(tmp_path: Path) -> None:
    path = _write(tmp_path / "secret", GOOD)
    with pytest.raises(KeyFileError, match="not overwritten"):
        new_secret(path)
    assert path.read_text() == GOOD


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_file_that_others_may_use_is_refused_with_the_command_to_run(
    tmp_path: Path, mode: int
) -> None:
    path = _write(tmp_path / "secret", GOOD, mode)
    with pytest.raises(KeyFileError, match=rf"mode {mode:04o}.*chmod 600 {path}"):
        load_secret(path)


@pytest.mark.parametrize(
    "text", ["", GOOD[:-2], GOOD + "00", "zz" * 32, "0" * 64, "Schlüssel", GOOD + GOOD, "\n"]
)
def test_a_malformed_file_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    path = _write(tmp_path / "secret", text)
    with pytest.raises(KeyFileError) as caught:
        load_secret(path)
    assert "key new" in str(caught.value)
    assert not text.strip() or text.strip() not in str(caught.value)


def test_missing_folder_and_fifo_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="no such key file"):
        load_secret(tmp_path / "absent")
    with pytest.raises(KeyFileError):
        load_secret(tmp_path)
    os.mkfifo(tmp_path / "fifo", 0o600)
    with pytest.raises(KeyFileError, match="not a regular file"):
        load_secret(tmp_path / "fifo")
    with pytest.raises(KeyFileError, match="cannot be written"):
        new_secret(tmp_path / "no" / "such" / "folder")
    with pytest.raises(KeyFileError, match="not a valid path"):
        load_secret("a\0b")


@pytest.mark.parametrize("mode", [0o440, 0o640])
def test_the_group_may_read_a_file_of_somebody_else_as_kubernetes_mounts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    key_file = tmp_path / "key"
    secret = new_secret(key_file)
    key_file.chmod(mode)
    somebody = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: somebody)
    assert load_secret(key_file).keys() == secret.keys()


@pytest.mark.parametrize("mode", [0o460, 0o444, 0o446])
def test_others_may_not_use_a_file_of_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    key_file = tmp_path / "key"
    new_secret(key_file)
    key_file.chmod(mode)
    somebody = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: somebody)
    with pytest.raises(KeyFileError, match=f"mode {mode:04o}"):
        load_secret(key_file)


def test_a_symbolic_link_is_followed_as_kubernetes_mounts_need(tmp_path: Path) -> None:
    real = _write(tmp_path / "..data", GOOD + "\n")
    (tmp_path / "secret").symlink_to(real)
    assert load_secret(tmp_path / "secret").keys() == load_secret(real).keys()


def test_a_full_disk_leaves_no_half_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KeyFileError, match="No space left"):
        new_secret(tmp_path / "key")
    assert list(tmp_path.iterdir()) == []


def test_ephemeral_secrets_differ() -> None:
    assert ephemeral_secret().keys().key_id != ephemeral_secret().keys().key_id
