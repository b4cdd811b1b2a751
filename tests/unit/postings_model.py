"""The posting index as plain dicts: live is what nobody has dropped, and nothing else counts."""

from dataclasses import dataclass, field

from detector.index.postings import Hits
from detector.model import Kind, Sequence

Posting = tuple[int, int]
"""Number of the sequence, counted from the first ever added, and token position."""

Hit = tuple[int, int, int, bool]
"""Other sequence, other position, position, received."""


@dataclass
class PostingModel:
    """First and last live posting of every key and owner; sequences below `gone` are not live."""

    window_ms: int
    gone: int = 0
    sequences: list[tuple[Sequence, int, int]] = field(default_factory=list)
    rows: dict[int, dict[tuple[int, Kind], list[Posting]]] = field(default_factory=dict)

    def observe(self, keys: list[int], sequence: Sequence, party: int, order: int) -> list[Hit]:
        """Probe and insert, return the sorted hits. `order` ranks the sequence among responses."""
        current = len(self.sequences)
        self.sequences.append((sequence, party, order))
        hits: list[Hit] = []
        for at, key in enumerate(keys):
            self._expire(key)
            owners = self.rows.setdefault(key, {})
            for (other_party, _), postings in owners.items():
                if other_party != party:
                    hits += [hit for one in dict.fromkeys(postings) for hit in self._hit(one, at)]
            mine = owners.setdefault((party, sequence.kind), [(current, at)] * 2)
            if mine[1][0] != current:
                mine[1] = (current, at)
        return sorted(hits)

    def live(self) -> int:
        """Return how many rows have a live posting."""
        for key in self.rows:
            self._expire(key)
        return sum(map(len, self.rows.values()))

    def owned(self, key: int, party: int, kind: Kind, latest_ms: int) -> bool:
        """Tell whether the owner's first live posting is of a sequence started by `latest_ms`."""
        self._expire(key)
        postings = self.rows.get(key, {}).get((party, kind))
        return postings is not None and self._started(postings[0]) <= latest_ms

    def _expire(self, key: int) -> None:
        owners = self.rows.get(key, {})
        for owner, (first, last) in list(owners.items()):
            if last[0] < self.gone:
                del owners[owner]
            elif first[0] < self.gone:
                owners[owner][0] = last

    def _started(self, posting: Posting) -> int:
        return self.sequences[posting[0]][0].started_at_ms

    def _hit(self, posting: Posting, at: int) -> list[Hit]:
        other, _, other_order = self.sequences[posting[0]]
        mine, _, my_order = self.sequences[-1]
        both = other.kind is mine.kind is Kind.RESPONSE
        received = mine.kind is Kind.RESPONSE and (not both or other_order < my_order)
        source, sink = (other, mine) if received else (mine, other)
        age = sink.started_at_ms - source.started_at_ms
        fits = source.started_at_ms < sink.ended_at_ms and age <= self.window_ms
        return [(*posting, at, received)] if sink.kind is Kind.RESPONSE and fits else []


def as_listed(hits: Hits, dropped: int) -> list[Hit]:
    """Return the hits of the index as the model lists them, `dropped` sequences having gone."""
    columns = (hits.other + dropped, hits.other_at, hits.at, hits.received)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))
