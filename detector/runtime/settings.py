"""Settings of what is read from the runtime: how much of what, for how long, is a finding."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from detector.settings import Positive, Section

Share = Annotated[float, Field(gt=0, le=1)]


class RuntimeSettings(Section):
    """Thresholds of the runtime join, the contradiction rules and the rules about engines."""

    join_margin_ms: Positive = Field(
        60_000,
        description="What an engine reports so long before the source's start or after the sink's "
        "end belongs to a finding: twice a clock skew of 30 s.",
    )
    hold_ms: Annotated[int, Field(ge=0)] = Field(
        5_000,
        description="How long, by an engine's own times, its samples and events wait for earlier "
        "ones: one scrape.",
    )
    quiet_ms: Positive = Field(
        300_000,
        description="A failure this long after the one before begins a new episode, and with it a "
        "new finding.",
    )
    unreleased_share: Share = Field(
        0.01, description="Share of the pool that must be unreleased: more than padding and pins."
    )
    unreleased_tokens: Positive = Field(
        1_024, description="Tokens that must be unreleased, however small the pool."
    )
    unreleased_exact_ms: Positive = Field(
        60_000,
        description="How long that must last while nothing runs, by exact figures: idle metrics "
        "are refreshed every 30 s.",
    )
    unreleased_estimate_ms: Positive = Field(
        300_000, description="The same by estimates, which are noisy: five times as long."
    )
    transfer_failures: Positive = Field(
        5, description="Failed transfers of an engine within quiet_ms: single ones follow aborts."
    )
    pool_usage: Share = Field(
        0.9, description="Share of the pool in use that is pressure: above it engines evict."
    )
    pool_usage_clear: Share = Field(
        0.85, description="Share of the pool in use below which the pressure is over."
    )
    pool_usage_ms: Positive = Field(
        60_000,
        description="How long the pool must be that full: a burst of prompts is over by then.",
    )
    degenerate_share: Share = Field(
        0.5, description="Share of low-complexity shingles that makes a response degenerate."
    )
    degenerate_shingles: Positive = Field(
        64, description="Low-complexity shingles that a degenerate response has at least."
    )
    degenerate_responses: Annotated[int, Field(ge=2)] = Field(
        5,
        description="Degenerate responses of one engine within quiet_ms, of two tenants at least: "
        "single models loop now and then.",
    )
    usage_share: Share = Field(
        0.5,
        description="An engine that reports fewer than this share of the prompt tokens sent did "
        "not read that prompt.",
    )
    usage_tokens: Positive = Field(
        64, description="Tokens by which they must differ: templates add or drop a few dozen."
    )

    release_ms: Positive = Field(
        60_000,
        description="How long after its end a request may hold KV blocks: 30 s, as engines hold "
        "what a peer has yet to read, and a clock skew of 30 s.",
    )
    ledger_blocks: Positive = Field(
        100_000,
        description="KV blocks whose owner the ledger of a partition remembers, about 1 KB each; "
        "those of the pool silent for longest go first.",
    )
    blind_losses: Positive = Field(
        10,
        description="Late sequences, requests without ids and other losses that single cases make "
        "too, within quiet_ms, that are told; what loses whole stretches is told at once.",
    )

    @model_validator(mode="after")
    def _ends_lower(self) -> Self:
        if self.pool_usage_clear > self.pool_usage:
            raise ValueError("must not end above where it begins: pool_usage_clear, pool_usage")
        return self
