"""Band keys of sketches, and the table from band key to the newest document that has it (numba).

Documents that share a band key form a chain from the newest to the oldest: `links[slot, band]` is
the next older one. A chain is left at the first document that has expired, so expiry costs nothing
but an occasional rebuild of the table.
"""

import numpy as np

from detector.kernels.bigrams import sampled_sketch
from detector.kernels.cache import njit
from detector.sketch.shingle import MIX_1, MIX_2

_M1 = np.uint64(MIX_1)
_M2 = np.uint64(MIX_2)
_S = np.uint64(33)
_STEP = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: band numbers lie far apart
_HALF = np.uint64(32)

PADDING_ROWS = 8_192
"""Rows behind the last home instead of a wraparound; far more than the longest cluster seen."""


@njit(nogil=True, cache=True, inline="always")
def home_row(key, homes):
    """Return the first row to look at for a key: its high 32 bits scaled to the homes."""
    return np.int64(((np.uint64(key) >> _HALF) * np.uint64(homes)) >> _HALF)


@njit(nogil=True, cache=True)
def band_keys(values, bands, rows):
    """Return the 64-bit key of every band, shape (sketches, bands), from values (sketches, n).

    A chain of MurmurHash3's 64-bit finalizer over the band's number and its values. Two bands that
    differ share a key with probability 2^-64.
    """
    keys = np.empty((len(values), bands), np.int64)
    for at in range(len(values)):
        for band in range(bands):
            key = np.uint64(band + 1) * _STEP
            for row in range(rows):
                key = (key ^ np.uint64(values[at, band * rows + row])) * _M1
                key = (key ^ (key >> _S)) * _M2
                key ^= key >> _S
            keys[at, band] = np.int64(key)
    return keys


@njit(nogil=True, cache=True)
def insert(table, homes, links, keys, number, oldest):
    """Add documents `number`, `number` + 1 ... with band keys (documents, bands).

    A row is (key, newest document + 1); a row whose document is below `oldest` is used again.
    Returns how many rows are newly used.
    """
    added = 0
    for at in range(len(keys)):
        document = number + at
        for band in range(keys.shape[1]):
            key = keys[at, band]
            row = home_row(key, homes)
            free = -1
            while row < len(table) and table[row, 1] != 0:
                if table[row, 1] - 1 < oldest:
                    if free < 0:
                        free = row
                elif table[row, 0] == key:
                    break
                row += 1
            older = -1
            if row < len(table) and table[row, 1] != 0:
                older = table[row, 1] - 1
            elif free >= 0:
                row = free
            else:
                added += 1
            links[document % len(links), band] = older
            if row < len(table):
                table[row, 0] = key
                table[row, 1] = document + 1
    return added


@njit(nogil=True, cache=True)
def query(table, homes, links, times, keys, oldest, since_ms, limit, seen, found):
    """Write the distinct live documents that share a band into `found`; return how many.

    `seen[slot]` holds the stamp of the last query that met the document, `found` has room for all
    slots. `times[slot]` older than `since_ms` has expired. At most `limit` documents are written,
    in each band the newest first; a negative return value says that more were left out.
    """
    written = 0
    stamp = seen[-1] + 1
    seen[-1] = stamp
    capacity = len(links)
    for band in range(len(keys)):
        row = home_row(keys[band], homes)
        while row < len(table) and table[row, 1] != 0 and table[row, 0] != keys[band]:
            row += 1
        if row == len(table) or table[row, 1] == 0:
            continue
        document = table[row, 1] - 1
        while document >= oldest:
            slot = document % capacity
            if seen[slot] != stamp and times[slot] >= since_ms:
                if written == limit:
                    return -written
                seen[slot] = stamp
                found[written] = document
                written += 1
            document = links[slot, band]
    return written


@njit(nogil=True, cache=True)
def meet(
    table, homes, links, times, values, seen, found, tokens, salt, a, b, bands, rows, number,
    time_ms, oldest, since_ms, limit, least_equal,
):  # fmt: skip
    """Query the sketch of a text's sampled bigrams, then insert it.

    Kept are the candidates that agree with it in `least_equal` values.
    Returns (candidates written to `found`, or -1 - that many if more were left out; new rows).
    """
    sketch = sampled_sketch(tokens, salt, a, b)
    keys = band_keys(sketch.reshape(1, -1), bands, rows)
    met = query(table, homes, links, times, keys[0], oldest, since_ms, limit, seen, found)
    written = 0
    for i in range(abs(met)):
        known = values[found[i] % len(values)]
        equal = 0
        for p in range(len(sketch)):
            equal += known[p] == sketch[p]
        found[written] = found[i]
        written += equal >= least_equal
    slot = number % len(times)
    times[slot] = time_ms
    values[slot] = sketch
    added = insert(table, homes, links, keys, number, oldest)
    return (written if met >= 0 else -1 - written), added


@njit(nogil=True, cache=True)
def rebuild(old, table, homes, oldest):
    """Copy the live rows of `old` into the empty `table`; return their number."""
    live = 0
    for at in range(len(old)):
        if old[at, 1] == 0 or old[at, 1] - 1 < oldest:
            continue
        row = home_row(old[at, 0], homes)
        while table[row, 1] != 0:
            row += 1
        table[row] = old[at]
        live += 1
    return live
