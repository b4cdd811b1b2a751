"""JSON documents of an engine: decoded within bounds, values found by dotted paths."""

from collections.abc import Iterator

import msgspec

from detector.errors import ScrapeError
from ingest.scrape.mapping import RankValues


def parse_document(body: str, *, where: str) -> object:
    """Return what a JSON text holds. Raises ScrapeError for what is none."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        raise ScrapeError("malformed", "the answer is not JSON", where=where) from None


def at_path(content: object, path: str) -> object:
    """Return the value at a dotted path, None without one; a number picks a list item."""
    for step in path.split("."):
        if isinstance(content, dict):
            content = content.get(step)
        elif isinstance(content, list) and step.isdigit() and int(step) < len(content):
            content = content[int(step)]
        else:
            return None
    return content


def rank_entries(content: object, ranks: RankValues) -> Iterator[tuple[int, object]]:
    """Yield the ranks that a document lists, each with its entry."""
    entries = at_path(content, ranks.list)
    for entry in entries if isinstance(entries, list) else ():
        rank = at_path(entry, ranks.rank)
        if isinstance(rank, int) and not isinstance(rank, bool) and rank >= 0:
            yield rank, entry
