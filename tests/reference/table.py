"""The filter table of the evaluation data's README, straight from the definitions.

The reading that reproduces the table (each point was tried against its alternatives):
a pair is one response (sink) and one prompt or response (source) of another tenant whose request
started 0 to 300 s before the sink's request. Every filter decides per shingle and pair; explained
shingles are taken out, and the run length is the longest chain of consecutive shingles left on
one diagonal of one pair, plus 9. Nothing is bridged here. "Before" means started before.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.reference import traffic as data
from tests.reference.traffic import SHINGLE, Ints, Record, Traffic

Mask = NDArray[np.bool_]
WINDOW_S = 300
MIN_DISTINCT = 6


class Hits(NamedTuple):
    """Matched shingles: token positions in the sink and in the source, of all pairs."""

    sink: Ints
    source: Ints

    def keep(self, mask: Mask) -> "Hits":
        """Return the hits where the mask is true."""
        return Hits(self.sink[mask], self.source[mask])


def hits(traffic: Traffic) -> Hits:
    """Find every shingle of the hour that two tenants show within the window.

    Occurrences are sorted by (shingle, start); each is compared with the one before it, the one
    before that and so on, until the shingle differs or the start is too old.
    """
    t = traffic
    here = np.flatnonzero((t.sequence >= t.hour) & (t.shingle >= 0))
    here = here[np.lexsort((t.start[t.sequence[here]], t.shingle[here]))]
    name, start, tenant = t.shingle[here], t.start[t.sequence[here]], t.tenant[t.sequence[here]]
    found: list[Hits] = []
    later, step = np.arange(len(here)), 1
    while len(later := later[later >= step]):
        near = name[later] == name[later - step]
        near &= start[later] - start[later - step] <= WINDOW_S
        later = later[near]
        pair = later[tenant[later] != tenant[later - step]]
        found.append(Hits(here[pair], here[pair - step]))
        together = start[pair] == start[pair - step]
        found.append(Hits(here[pair - step][together], here[pair][together]))
        step += 1
    every = Hits(np.concatenate([h.sink for h in found]), np.concatenate([h.source for h in found]))
    return every.keep(t.sequence[every.sink] % 2 == 1)


class Shown(NamedTuple):
    """When each tenant first showed each shingle, sorted by shingle, then tenant."""

    shingle: Ints
    tenant: Ints
    start: NDArray[np.float64]


def first_shown(traffic: Traffic, *, from_sequence: int = 0) -> Shown:
    """Tabulate the first start per (shingle, tenant) over history and hour, all pools."""
    t = traffic
    at = np.flatnonzero((t.shingle >= 0) & (t.sequence >= from_sequence))
    name, tenant, start = t.shingle[at], t.tenant[t.sequence[at]], t.start[t.sequence[at]]
    order = np.lexsort((start, tenant, name))
    name, tenant, start = name[order], tenant[order], start[order]
    new = np.concatenate([[True], (np.diff(name) != 0) | (np.diff(tenant) != 0)])
    return Shown(name[new], tenant[new], start[new])


def shown_before(shown: Shown, name: Ints, before: NDArray[np.float64], who: Mask) -> Mask:
    """True where one of the tenants `who[i]` (flags, one row per hit) showed the shingle before."""
    begin = np.searchsorted(shown.shingle, name)
    end = np.searchsorted(shown.shingle, name, side="right")
    result = np.zeros(len(name), np.bool_)
    row = np.arange(len(name))
    for step in range(int((end - begin).max(initial=0))):
        at = np.minimum(begin + step, len(shown.shingle) - 1)
        allowed = (begin + step < end) & (shown.start[at] < before)
        result |= allowed & who[row, shown.tenant[at]]
    return result


def common(t: Traffic, h: Hits, shown: Shown) -> Mask:
    """A tenant besides source and sink showed it before the sink started, any pool."""
    sink, source = t.sequence[h.sink], t.sequence[h.source]
    others = np.ones((len(sink), len(t.tenants)), np.bool_)
    others[np.arange(len(sink)), t.tenant[sink]] = False
    others[np.arange(len(sink)), t.tenant[source]] = False
    return shown_before(shown, t.shingle[h.sink], t.start[sink], others)


def own_history(t: Traffic, h: Hits, shown: Shown) -> Mask:
    """The sink's tenant showed it, prompt or response, before the source started."""
    sink, source = t.sequence[h.sink], t.sequence[h.source]
    mine = np.arange(len(t.tenants)) == t.tenant[sink][:, None]
    return shown_before(shown, t.shingle[h.sink], t.start[source], mine)


def own_prompt(t: Traffic, h: Hits) -> Mask:
    """The sink request's own prompt has it."""
    stride = int(t.shingle.max()) + 2
    prompts = t.sequence % 2 == 0
    return np.isin(
        (t.sequence[h.sink] - 1) * stride + t.shingle[h.sink],
        t.sequence[prompts] * stride + t.shingle[prompts],
    )


def low_complexity(t: Traffic, h: Hits) -> Mask:
    """Fewer than 6 distinct ids."""
    ids = np.sort(t.window(h.sink), axis=1)
    return np.asarray((np.diff(ids, axis=1) != 0).sum(axis=1) + 1 < MIN_DISTINCT)


def template(t: Traffic, h: Hits) -> Mask:
    """It holds a chat template marker. No row of the table, but part of C4 and C5."""
    ids = t.window(h.sink)
    return np.asarray(((ids == data.IM_START) | (ids == data.IM_END)).any(axis=1))


def same_pool(t: Traffic, h: Hits) -> Mask:
    """Sink and source ran on the same node."""
    return np.asarray(t.pool[t.sequence[h.sink]] == t.pool[t.sequence[h.source]])


def same_question(t: Traffic, h: Hits, *, last_only: bool = False) -> Mask:
    """The sink's last user turn is near-identical to a user turn (or the last) of the source's."""
    pair = np.stack([t.sequence[h.sink] // 2, t.sequence[h.source] // 2])
    pairs, which = np.unique(pair, axis=1, return_inverse=True)
    turns = {r: data.user_turns(t.records[r]["prompt_ids"]) for r in np.unique(pairs).tolist()}
    answers = []
    for sink, source in pairs.T.tolist():
        asked = turns[source][-1:] if last_only else turns[source]
        answers.append(any(_alike(mine, other) for mine in turns[sink][-1:] for other in asked))
    return np.array(answers, np.bool_)[which.reshape(-1)]


def _alike(one: tuple[int, ...], two: tuple[int, ...]) -> bool:
    """Identical, or sharing at least half of the smaller one's shingles."""
    if one == two:
        return True
    a, b = data.shingles(one), data.shingles(two)
    smaller = min(len(a), len(b))
    return smaller > 0 and 2 * len(a & b) >= smaller


class Runs(NamedTuple):
    """Maximal chains of consecutive hits on one diagonal of one pair: sequences and tokens."""

    sink: Ints
    source: Ints
    tokens: Ints


def runs(t: Traffic, h: Hits) -> Runs:
    """Chain the hits."""
    order = np.lexsort((h.sink, h.source - h.sink))
    sink, source = h.sink[order], h.source[order]
    new = np.diff(sink) != 1
    for column in (source - sink, t.sequence[sink], t.sequence[source]):
        new |= np.diff(column) != 0
    first = np.flatnonzero(np.concatenate([[True], new]))
    tokens = np.diff(np.append(first, len(sink))) + SHINGLE - 1
    return Runs(t.sequence[sink[first]], t.sequence[source[first]], tokens)


def flagged(found: Runs, tokens: int) -> int:
    """Count the responses with a run of at least that many tokens."""
    return len(np.unique(found.sink[found.tokens >= tokens]))


def recall(t: Traffic, found: Runs, truth: list[Record], tokens: int) -> float:
    """Percent of bleeds with such a run between the victim's response and the true source."""
    number = {r["request_id"]: at for at, r in enumerate(t.records)}
    long = found.tokens >= tokens
    pairs = set(zip(found.sink[long] // 2, found.source[long] // 2, strict=True))
    hit = sum(
        (number[row["victim_request_id"]], number[row["source_request_id"]]) in pairs
        for row in truth
    )
    return round(100 * hit / len(truth), 1)
