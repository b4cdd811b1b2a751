"""Allow-lists: public token sequences (licences, refusals, public prompts) that never count."""

from collections.abc import Iterable

import msgspec
import numpy as np

from detector.errors import InputError, RecordError
from detector.sketch.shingle import Keys, shingle_keys
from detector.sketch.token_table import TokenTable, checked_ids
from ingest.coverage import Coverage
from ingest.sources.lines import open_lines


class _Entry(msgspec.Struct):
    ids: list[int]


def load_allow_lists(paths: Iterable[str], table: TokenTable) -> Keys:
    """Return the sorted shingle keys of every sequence in JSONL files of `{"ids": [...]}`.

    Raises InputError with file and line for an entry that is not of this form: a list that is only
    half in force would alarm for what its owner believes is allowed.
    """
    decoder = msgspec.json.Decoder(_Entry)
    found = [np.empty(0, np.int64)]
    for path in paths:
        with open_lines(path, coverage=Coverage()) as lines:
            for number, line in lines:
                if not line.strip():
                    continue
                try:
                    hashes = table.hash(checked_ids(decoder.decode(line).ids))
                except (msgspec.DecodeError, RecordError):
                    raise InputError(
                        "the entry is not a list of token ids",
                        where=f"{path}:{number}",
                        hint='write one {"ids": [...]} a line',
                    ) from None
                found.append(shingle_keys(hashes))
    return np.unique(np.concatenate(found))
