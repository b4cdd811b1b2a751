"""The ledger of a soak: what was injected, what was told of it, and what without a cause."""

import json
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.cluster.faults import BLEEDING, REFUSED, Bleed
from tests.cluster.site import Site

CONTENT: Final = frozenset({"BW001", "BW002", "BW003"})
BLIND: Final = "BW901"

NEAR_S: Final = 120.0
"""How far from a bleed a report of blindness may be to be its reason: what is lost is told once for
each quiet time, and a process that was away needs a while to come back."""

Told = dict[str, Any]
"""A finding as the api tells it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of one: the rules that name its request, or the causes of blindness."""

    bleed: Bleed
    rules: tuple[str, ...]
    seconds: float | None
    """From the request to the first finding of it."""
    causes: tuple[str, ...]

    @property
    def is_accounted(self) -> bool:
        """True if somebody was told, of it or of why it could not be seen."""
        return bool(self.rules or self.causes)


def findings(site: Site) -> Iterator[Told]:
    """Yield every stored finding, page by page."""
    cursor = ""
    while True:
        asked = {"limit": "500"} | ({"cursor": cursor} if cursor else {})
        url = f"{site.triage}/v1/findings?{urllib.parse.urlencode(asked)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            page = json.loads(answer.read())
        yield from (one["finding"] for one in page["findings"])
        cursor = page["next"]
        if not cursor:
            return


def entries(bleeds: Iterable[Bleed], told: Sequence[Told]) -> list[Entry]:
    """Return what became of every injected bleed."""
    return [_entry(bleed, told) for bleed in bleeds]


def false_high(told: Iterable[Told]) -> list[Told]:
    """Return the findings of high confidence that no injected fault explains."""
    return [
        one
        for one in told
        if one["confidence"] == "high"
        and one["rule"] != BLIND
        and not one["sink"]["request_id"].startswith(REFUSED)
    ]


def _entry(bleed: Bleed, told: Sequence[Told]) -> Entry:
    sent_s = bleed.sink.sent_s
    about = [one for one in told if one["sink"]["request_id"] == bleed.sink.request_id]
    seconds = [one["detected_at_ms"] / 1000 - sent_s for one in about]
    near = (
        one["explanation"]
        for one in told
        if one["rule"] == BLIND
        and one["kv_pool"] == BLEEDING
        and abs(one["observed_at_ms"] / 1000 - sent_s) < NEAR_S
    )
    return Entry(
        bleed=bleed,
        rules=tuple(sorted({one["rule"] for one in about})),
        seconds=min(seconds, default=None),
        causes=() if about else tuple(sorted(set(near))),
    )
