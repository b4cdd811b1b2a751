"""Settings of the look-back: how far it reaches, and how long one may take in the background."""

from pydantic import Field

from detector.settings import Positive, Section


class TraceSettings(Section):
    """Bounds of the search for the sources of one response."""

    since_ms: Positive = Field(
        86_400_000,
        description="How long before the response began a source may have begun: what the "
        "sequences topic keeps by default (a day).",
    )
    budget_ms: Positive = Field(
        120_000,
        description="How long one look-back in the background may take; what was found by then is "
        "kept. A day of a pool with 10,000 tokens a second takes about a minute on one core.",
    )
