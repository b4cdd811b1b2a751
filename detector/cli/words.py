"""Counts as people read them."""


def counted(count: int, one: str, many: str = "") -> str:
    """`count` with its noun: "1 finding", "1,200 findings"; `many` is for nouns without -s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


ENGINE = "engine"
"""Kind of both sides of a finding that is about an engine and not about a request."""
