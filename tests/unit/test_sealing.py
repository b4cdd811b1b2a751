"""Keys in use: what a ring shows, and how a running process follows a rotation."""

import os
from pathlib import Path

import pytest

from detector.errors import KeyFileError, RecordError
from detector.sketch.token_table import Secret
from ingest.key_file import new_secret
from ingest.key_rotation import RotatingKeys, SealingSettings
from ingest.sealing import TAG_BYTES, KeyRing, Sealed
from tests.unit.wire import OLD_SECRET, RING, SECRET

REREAD_S = 10.0
KEEP_S = 3600.0


def test_what_is_sealed_opens_with_what_was_authenticated() -> None:
    sealed = RING.seal(RING.key_id, b"hashes", b"index")
    assert len(sealed.data) == len(b"hashes") + TAG_BYTES
    assert RING.open(RING.key_id, sealed, b"index") == b"hashes"
    with pytest.raises(RecordError) as caught:
        RING.open(RING.key_id, sealed, b"Index")
    assert caught.value.reason == "seal_broken"


def test_a_short_or_empty_ciphertext_is_a_broken_seal() -> None:
    for size in range(TAG_BYTES + 1):
        with pytest.raises(RecordError) as caught:
            RING.open(RING.key_id, Sealed(bytes(16), bytes(12), bytes(size)), b"")
        assert caught.value.reason == "seal_broken"


def test_an_earlier_key_opens_and_seals_and_an_unknown_one_does_neither() -> None:
    ring = KeyRing.of(SECRET, OLD_SECRET)
    old = KeyRing.of(OLD_SECRET)
    assert ring.open(old.key_id, old.seal(old.key_id, b"x", b""), b"") == b"x"
    assert old.open(old.key_id, ring.seal(old.key_id, b"x", b""), b"") == b"x"
    for act in (
        lambda: old.seal(ring.key_id, b"x", b""),
        lambda: old.open(ring.key_id, ring.seal(ring.key_id, b"x", b""), b""),
    ):
        with pytest.raises(RecordError) as caught:
            act()
        assert caught.value.reason == "unknown_key"


def test_a_ring_shows_no_key() -> None:
    shown = repr(KeyRing.of(SECRET, OLD_SECRET)) + str(vars(RING))
    for secret in (SECRET, OLD_SECRET):
        keys = secret.keys()
        for key in (keys.seal_key, keys.hash_key, keys.tag_key):
            assert key.hex() not in shown
            assert repr(key) not in shown


class Deployment:
    """A key file that is rotated as operators do: a new file moved into its place."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "secret.key"
        self.secrets: list[Secret] = []
        self.rotate()

    def rotate(self) -> None:
        fresh = self.path.with_suffix(".new")
        self.secrets.append(new_secret(fresh))
        os.replace(fresh, self.path)

    def keys(self, **settings: object) -> RotatingKeys:
        return RotatingKeys(str(self.path), SealingSettings.model_validate(settings), now_s=1_000.0)

    def id(self, number: int) -> str:
        return self.secrets[number].keys().key_id


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path)


def test_a_rotation_is_followed_and_the_old_key_is_kept_for_its_time(
    deployment: Deployment,
) -> None:
    keys = deployment.keys()
    deployment.rotate()
    assert keys.ring(1_000 + REREAD_S - 0.1).key_id == deployment.id(0)
    changed_s = 1_000 + REREAD_S
    assert keys.ring(changed_s).key_id == deployment.id(1)
    assert keys.ring(changed_s + KEEP_S - 1).key_ids == {deployment.id(0), deployment.id(1)}
    assert keys.ring(changed_s + KEEP_S + REREAD_S).key_ids == {deployment.id(1)}


def test_a_rotation_that_is_taken_back_keeps_both_keys(deployment: Deployment) -> None:
    keys = deployment.keys()
    before = deployment.path.read_bytes()
    deployment.rotate()
    assert keys.ring(1_010).key_id == deployment.id(1)
    deployment.path.write_bytes(before)
    assert keys.ring(1_020).key_id == deployment.id(0)
    assert keys.ring(1_020 + KEEP_S - 1).key_ids == {deployment.id(0), deployment.id(1)}
    assert keys.ring(1_020 + 2 * KEEP_S).key_ids == {deployment.id(0)}


def test_a_file_half_written_changes_nothing_and_is_told(deployment: Deployment) -> None:
    keys = deployment.keys()
    whole = deployment.path.read_bytes()
    deployment.path.write_bytes(whole[:20])
    assert keys.ring(1_010).key_id == deployment.id(0)
    assert isinstance(keys.problem, KeyFileError)
    deployment.path.write_bytes(whole)
    assert keys.ring(1_020).key_ids == {deployment.id(0)}
    assert keys.problem is None


def test_further_files_open_for_as_long_as_they_are_there(
    deployment: Deployment, tmp_path: Path
) -> None:
    earlier, coming = tmp_path / "previous.key", tmp_path / "next.key"
    old_id = new_secret(earlier).keys().key_id
    keys = deployment.keys(accepted_key_files=[str(earlier), str(coming)])
    assert keys.ring(1_001).key_ids == {deployment.id(0), old_id}
    new_id = new_secret(coming).keys().key_id
    assert keys.ring(1_020).key_ids == {deployment.id(0), old_id, new_id}
    assert keys.ring(1_021).key_id == deployment.id(0)
    earlier.unlink()
    coming.write_text("half")
    assert keys.ring(1_040).key_ids == {deployment.id(0), new_id}
    assert isinstance(keys.problem, KeyFileError)


def test_no_key_file_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError):
        RotatingKeys(str(tmp_path / "none.key"), SealingSettings(), now_s=0)


def test_a_secret_in_place_of_its_path_is_refused_unseen() -> None:
    spelled = "ab" * 32
    with pytest.raises(ValueError, match="paths") as caught:
        SealingSettings(accepted_key_files=("old.key", spelled))
    assert "not the secrets" in str(caught.value.errors()[0]["msg"])  # type: ignore[attr-defined]
