"""Typed settings of the detector: the definitions of what counts, each with unit and reason.

This is the one place for the numbers of the detection (window, filter, thresholds). Values are
checked on construction; unknown keys are errors. Loading from YAML, environment and flags is done
by the command line, not here.
"""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Positive = Annotated[int, Field(gt=0)]

BackendName = Literal["auto", "numba", "numpy", "torch"]
"""What makes the shingles of many sequences at once."""


class Section(BaseModel):
    """A frozen group of settings that rejects unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class WindowSettings(Section):
    """Event time: which pairs are close enough to compare, and how disorder is absorbed."""

    length_ms: Positive = Field(
        300_000, description="Largest distance from source start to sink start (5 minutes)."
    )
    longest_response_ms: Positive = Field(
        600_000, description="How long one response may take; postings outlive the window by this."
    )
    grace_ms: Positive = Field(
        60_000, description="How late a record may arrive and still be ordered by event time."
    )

    @property
    def keep_ms(self) -> int:
        """How long a sequence stays in the window's store: window + longest response + grace."""
        return self.length_ms + self.longest_response_ms + self.grace_ms


class IndexSettings(Section):
    """The exact shingle index."""

    sampling: Literal["every", "winnow"] = Field(
        "every", description="Index and remember every shingle, or winnow where that is too much."
    )
    winnow_window: Annotated[int, Field(ge=2, le=64)] = Field(
        8, description="Winnowing window w: guarantees runs of w+9 tokens at density 2/(w+1)."
    )
    memory_bytes: Positive = Field(
        2 * 1024**3, description="Byte budget of the postings; what does not fit is reported."
    )


class CopySettings(Section):
    """Edited copies of whole responses, which may hold no common run of tokens."""

    similarity: Annotated[float, Field(gt=0, le=1)] = Field(
        0.5, description="Share of their bigrams that two responses must have in common (Jaccard)."
    )
    min_bigrams: Annotated[int, Field(ge=64)] = Field(
        128,
        description="Distinct unexplained bigrams that both must have: of 11.8 million pairs of "
        "real responses to different questions, one pair with as many reaches the similarity.",
    )
    memory_bytes: Positive = Field(
        64 * 1024**2, description="Byte budget of the sketches; the oldest goes first."
    )


class CommonnessSettings(Section):
    """The day-long memory of which tenants have shown which shingle."""

    horizon_ms: Positive = Field(
        86_400_000, description="How long a shingle is remembered (a day)."
    )
    memory_bytes: Positive = Field(1024**3, description="Byte budget; the oldest goes first.")
    range_memory_bytes: Positive = Field(
        128 * 1024**2,
        description="Byte budget of one range of shingles in the worker that owns it, one range "
        "for each partition; the oldest goes first.",
    )
    learning_ms: Annotated[int, Field(ge=0)] = Field(
        3_600_000,
        description="Until this much event time was seen, content findings are capped at low "
        "confidence (state `learning`): the filter cannot know yet what is common.",
    )


class FilterSettings(Section):
    """What explains an overlap, and how much unexplained overlap is how sure."""

    min_distinct: Annotated[int, Field(ge=1, le=10)] = Field(
        6, description="Fewer distinct tokens among the 10 is low complexity and never counts."
    )
    bridge_tokens: Annotated[int, Field(ge=0, le=32)] = Field(
        4, description="Longest gap bridged on one diagonal; only matched tokens count."
    )
    same_question_containment: Annotated[float, Field(gt=0, le=1)] = Field(
        0.5, description="Share of the smaller last user turn's shingles that makes it the same."
    )
    low_tokens: Positive = Field(10, description="Unexplained tokens for low confidence.")
    medium_tokens: Positive = Field(12, description="Unexplained tokens for medium confidence.")
    high_tokens: Positive = Field(16, description="Unexplained tokens for high confidence.")
    density_step_tokens: Annotated[int, Field(ge=0)] = Field(
        8, description="Tokens added to the high threshold for every 12-fold density."
    )
    density_base_shingles: Positive = Field(
        50_000,
        description="Live shingles of a pool window at density ratio 1: nine of ten windows of "
        "real traffic hold fewer.",
    )
    allow_lists: tuple[str, ...] = Field(
        (),
        description="JSONL files of public token sequences (field `ids`), and of digests that "
        "`bleedwatch findings allow-list` has written, that never count.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.low_tokens <= self.medium_tokens <= self.high_tokens:
            raise ValueError("must not ask less for a higher confidence: low, medium, high tokens")
        return self


class DetectionSettings(Section):
    """Everything the detection core reads."""

    window: WindowSettings = WindowSettings()
    index: IndexSettings = IndexSettings()
    copies: CopySettings = CopySettings()
    commonness: CommonnessSettings = CommonnessSettings()
    filter: FilterSettings = FilterSettings()
    boundary: Literal["account", "tenant", "end_user", "session"] = Field(
        "tenant", description="What two requests must not share: the isolation boundary."
    )
    backend: BackendName = Field(
        "auto",
        description="What makes shingles in a replay; all give the same bits. `auto` is torch on "
        "a CUDA device, else numba.",
    )
