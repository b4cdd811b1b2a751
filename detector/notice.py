"""A factual notice to one tenant about one incident: what is known, and what is not.

It is made of numbers, times, fixed words and the tenant's own request ids. Nothing of another
tenant goes in, neither a name nor a number of one request, and no content of anybody.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from detector.finding import Confidence, Finding, Party

MAX_REQUESTS: Final = 50
"""Request ids in a notice; the rest are counted."""

_SHOWN: Final = {
    "prompt": "text of a prompt (a prompt may hold a system prompt, a conversation and the output "
    "of tools; which of them it was is not recorded)",
    "response": "text of a response",
}


class Touched(NamedTuple):
    """How an incident touches one tenant.

    `exposed` are the tenant's requests whose content others may have received, `received` those
    in whose answers content of others may stand, `faulty` those about which engines contradict
    themselves.
    """

    exposed: tuple[Party, ...]
    received: tuple[Party, ...]
    faulty: tuple[Party, ...]
    is_sure: bool
    from_ms: int
    until_ms: int

    @property
    def is_any(self) -> bool:
        """True if it touches the tenant at all."""
        return bool(self.exposed or self.received or self.faulty)


def touched(findings: Iterable[Finding], tenant: str, *, traced: Iterable[Party] = ()) -> Touched:
    """Return how findings touch a tenant; `traced` are sources that were looked for afterwards."""
    known = list(findings)
    exposed = {one.request_id: one for one in traced if one.tenant == tenant}
    received: dict[str, Party] = {}
    faulty: dict[str, Party] = {}
    mine: list[Finding] = []
    for finding in known:
        sources = [finding.source, *finding.other_sources] if finding.is_content else []
        own = [one for one in sources if one.tenant == tenant]
        exposed |= {one.request_id: one for one in own}
        if finding.sink.tenant == tenant and finding.sink.request_id:
            side = received if finding.is_content else faulty
            side[finding.sink.request_id] = finding.sink
        if own or finding.sink.tenant == tenant:
            mine.append(finding)
    times = [one.observed_at_ms for one in mine or known]
    return Touched(
        _in_order(exposed),
        _in_order(received),
        _in_order({name: one for name, one in faulty.items() if name not in received}),
        any(one.confidence is Confidence.HIGH for one in mine if one.is_content),
        min(times, default=0),
        max(times, default=0),
    )


def notice(incident_id: str, tenant: str, about: Touched) -> str:
    """Return the notice as Markdown."""
    lines = [
        "# Notice of an incident",
        "",
        f"For: `{_safe(tenant)}`",
        f"Incident: `{_safe(incident_id)}`",
        f"Time: {_time(about.from_ms)} to {_time(about.until_ms)} (UTC)",
        "",
        "## What happened",
        "",
        "Our language-model service runs requests of several customers on the same machines. Our "
        "monitor found answers in which parts of other requests stand, or requests that the "
        "machines handled in a way in which this can happen.",
        "",
        "## What it means for you",
        "",
    ]
    lines += _exposed(about) + _received(about) + _faulty(about)
    lines += ["", "## What is known, and what is not", "", *_known(about)]
    for title, parties in (
        ("Requests whose content is concerned", about.exposed),
        ("Requests whose answers are concerned", (*about.received, *about.faulty)),
    ):
        if parties:
            lines += ["", f"## {title}", "", *_requests(parties)]
    lines += ["", "## What we have done, and what comes next", "", "TO BE WRITTEN BY A PERSON."]
    return "\n".join(lines) + "\n"


def _exposed(about: Touched) -> list[str]:
    return [
        f"- Content of yours may have been shown to others: {_SHOWN.get(kind, kind)}, "
        f"{count:,} {'request' if count == 1 else 'requests'}."
        for kind, count in _by_kind(about.exposed)
    ]


def _received(about: Touched) -> list[str]:
    count = len(about.received)
    if not count:
        return []
    word = "answer" if count == 1 else "answers"
    return [
        f"- {count:,} {word} to you may hold content that is not yours. Please do not keep, use or "
        "pass it on."
    ]


def _faulty(about: Touched) -> list[str]:
    count = len(about.faulty)
    if not count:
        return []
    word = "request was" if count == 1 else "requests were"
    return [
        f"- {count:,} {word} handled in a way in which answers can be wrong. Please do not rely on "
        "these answers."
    ]


def _known(about: Touched) -> list[str]:
    sure = (
        "The match was long enough to exclude chance."
        if about.is_sure
        else "Whether content crossed is likely, and not certain."
    )
    lines = [f"- {sure}"] if about.exposed or about.received else []
    return [
        *lines,
        "- Our monitor keeps no content. It compares keyed hashes, so we know where, how long and "
        "how often, and not what the text says.",
        "- Who may have received content of yours is not told here, as you are not told to them.",
        "- What was never stored, or is older than our retention, is not counted.",
    ]


def _by_kind(parties: Sequence[Party]) -> list[tuple[str, int]]:
    kinds = [one.kind for one in parties]
    return [(kind, kinds.count(kind)) for kind in sorted(set(kinds))]


def _requests(parties: Sequence[Party]) -> list[str]:
    rows = ["| request | started (UTC) |", "|---|---|"]
    rows += [
        f"| `{_safe(one.request_id)}` | {_time(one.started_at_ms)} |"
        for one in parties[:MAX_REQUESTS]
    ]
    more = len(parties) - MAX_REQUESTS
    return [*rows, "", f"And {more:,} more."] if more > 0 else rows


def _safe(text: str) -> str:
    """Return what a code span holds as it is: no markup of others, and no end of the span."""
    return "".join(char if char.isprintable() and char not in "`|" else "?" for char in text)


def _in_order(parties: dict[str, Party]) -> tuple[Party, ...]:
    return tuple(sorted(parties.values(), key=lambda one: (one.started_at_ms, one.request_id)))


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
