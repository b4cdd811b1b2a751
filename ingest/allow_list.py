"""Allow-lists: public token sequences, and digests of what was judged to be none of anybody's."""

import logging
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from detector.errors import InputError, RecordError
from detector.finding import DIGEST_BYTES
from detector.match.allow_list import AllowList
from detector.match.digests import Digester
from detector.sketch.shingle import Keys, shingle_keys
from detector.sketch.token_table import TokenTable, checked_ids
from ingest.coverage import Coverage
from ingest.sources.lines import open_lines

_log = logging.getLogger(__name__)


class Public(msgspec.Struct, forbid_unknown_fields=True):
    """A public sequence, as token ids."""

    ids: list[int]


class Judged(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Digests of the shingles of a finding, in base64, under the key that `key` names."""

    key: str
    shingles: bytes
    finding: str = ""
    """Which one it was, for whoever reads the file."""


class _Found:
    def __init__(self, table: TokenTable, digester: Digester | None) -> None:
        self._table = table
        self._digester = digester
        self.keys: list[Keys] = [np.empty(0, np.int64)]
        self.digests: list[Keys] = [np.empty(0, np.int64)]
        self.of_other_keys = 0

    def add(self, line: bytes, where: str) -> None:
        """Take a line; raises InputError for one that is of neither form."""
        try:
            entry = _entry(line)
            if isinstance(entry, Public):
                self.keys.append(shingle_keys(self._table.hash(checked_ids(entry.ids))))
                return
        except (msgspec.DecodeError, RecordError, ValueError, RecursionError):
            raise InputError(
                "the entry is neither a list of token ids nor one of digests",
                where=where,
                hint='write one {"ids": [...]} a line, or let `bleedwatch findings allow-list` '
                "write it",
            ) from None
        if self._digester is None:
            raise InputError(
                f"the entry is hashed under key {entry.key}, and this run has no key",
                where=where,
                hint="set key_file to the secret of the deployment",
            )
        if entry.key != self._digester.key_id:
            self.of_other_keys += 1
        else:
            self.digests.append(np.frombuffer(entry.shingles, "<i8").astype(np.int64))


def load_allow_lists(
    paths: Iterable[str], table: TokenTable, digester: Digester | None = None
) -> AllowList:
    """Return what JSONL files of `{"ids": [...]}` and of `{"key": ..., "shingles": ...}` hold.

    Raises InputError with file and line for an entry of another form: a list that is only half in
    force would alarm for what its owner believes is allowed. Entries under another key, as after a
    rotation, say nothing about what is hashed now: they are passed over with a warning.
    """
    found = _Found(table, digester)
    for path in paths:
        before = found.of_other_keys
        coverage = Coverage()
        with open_lines(path, coverage=coverage) as lines:
            for number, line in lines:
                if line.strip():
                    found.add(line, f"{path}:{number}")
        _require_whole(path, coverage)
        if found.of_other_keys > before:
            _log.warning(
                "%s: %d entries are hashed under another key and allow nothing any more; "
                "write the list anew from findings of the key in use",
                path,
                found.of_other_keys - before,
            )
    return AllowList(
        np.concatenate(found.keys), digests=np.concatenate(found.digests), digester=digester
    )


def _require_whole(path: str, coverage: Coverage) -> None:
    """Raise InputError if lines were passed over: compressed data that is damaged, or one too long.

    Entries that cannot be read are told of where they stand.
    """
    if coverage.broken_samples:
        broken = coverage.broken_samples[0]
        line = "" if broken.line is None else f":{broken.line}"
        raise InputError(
            f"the list cannot be read to its end ({broken.reason})",
            where=f"{path}{line}",
            hint="restore the file, or write it anew: half a list is not used",
        )


def _entry(line: bytes | str) -> Public | Judged:
    fields = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    if "ids" in fields:
        return _PUBLIC.decode(line)
    entry = _JUDGED.decode(line)
    if not entry.shingles or len(entry.shingles) % DIGEST_BYTES:
        raise ValueError
    return entry


_PUBLIC: Final = msgspec.json.Decoder(Public)
_JUDGED: Final = msgspec.json.Decoder(Judged)
