"""The keys of a running process: read from files, and read again when an operator rotates them.

A new secret in the key file seals from then on. The one before it goes on opening for as long as
batches under it may still come. Secrets in further files only open: one that is coming, so that no
sender is ahead of its readers, and one that was, for processes that start after a rotation.
"""

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from detector.errors import KeyFileError
from detector.settings import Positive, Section
from detector.sketch.token_table import Keys
from ingest.key_file import load_secret, looks_like_a_secret
from ingest.sealing import KeyRing


class SealingSettings(Section):
    """Which secrets open batches besides the current one."""

    accepted_key_files: tuple[str, ...] = Field(
        (),
        description="Files with earlier or coming secrets: batches under them are opened too. One "
        "that does not exist is passed over.",
    )
    keep_earlier_ms: Annotated[int, Field(ge=60_000)] = Field(
        3_600_000,
        description="How long a running process goes on opening batches under the secret that its "
        "key file held before: a window and the longest stop that must lose nothing (an hour).",
    )
    reread_ms: Positive = Field(
        10_000, description="How often a running process looks whether its key files have changed."
    )

    @field_validator("accepted_key_files")
    @classmethod
    def _are_paths(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(map(looks_like_a_secret, value)):
            raise ValueError("must be the paths of key files, not the secrets")
        return value


class RotatingKeys:
    """Gives the ring of the moment. Times are seconds of a clock that never goes back.

    Raises KeyFileError when made from a file that is no key file. Later a file that cannot be read,
    such as one half written, changes nothing: its secret stays and `problem` says why.
    """

    def __init__(self, key_file: str, settings: SealingSettings, *, now_s: float) -> None:
        self._file = key_file
        self._settings = settings
        self._current = load_secret(key_file).keys()
        self._accepted = {
            path: load_secret(path).keys()
            for path in settings.accepted_key_files
            if Path(path).exists()
        }
        self._retired: list[tuple[float, Keys]] = []
        self._read_s = now_s
        self._ring = self._made()
        self.problem: KeyFileError | None = None

    @property
    def current(self) -> Keys:
        """The keys of the current secret, as of the last time that `ring` was asked for."""
        return self._current

    def ring(self, now_s: float) -> KeyRing:
        """Return the ring; reads the key files when `reread_ms` have passed since the last time."""
        if now_s - self._read_s >= self._settings.reread_ms / 1000:
            self._read_s = now_s
            self._reread(now_s)
        return self._ring

    def _reread(self, now_s: float) -> None:
        self.problem = None
        self._accepted = {
            path: keys
            for path in self._settings.accepted_key_files
            if Path(path).exists() and (keys := self._read(path, self._accepted.get(path)))
        }
        current = self._read(self._file, self._current) or self._current
        if current.key_id != self._current.key_id:
            self._retired.append((now_s, self._current))
            self._current = current
        expired_s = now_s - self._settings.keep_earlier_ms / 1000
        self._retired = [one for one in self._retired if one[0] > expired_s]
        self._ring = self._made()

    def _read(self, path: str, held: Keys | None) -> Keys | None:
        try:
            return load_secret(path).keys()
        except KeyFileError as error:
            self.problem = error
            return held

    def _made(self) -> KeyRing:
        retired = [keys for _, keys in self._retired]
        return KeyRing(self._current, [*self._accepted.values(), *retired])
