"""One request to the simulated cluster, and what becomes of it."""

from dataclasses import dataclass, field

from detector.sample.language import Ids


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """A client's request. Times are simulated seconds; `own` is what the model would say alone."""

    request_id: str
    tenant: str
    session: str
    model: str
    prompt: Ids
    own: Ids
    arrives_s: float
    seconds_per_token: float
    leaves_s: float = float("inf")
    """When its client goes away."""
    stops: bool = True
    """Whether the answer ends by itself; else it was cut at the limit."""
    began_s: float = 0.0
    ended_s: float = 0.0
    output: list[int] = field(default_factory=list)
    told_prompt_tokens: int = 0
    cached_tokens: int = 0
    finish_reason: str | None = None
    """stop, length or abort; None if it was rejected or its client left."""
    message: str = ""
    """Why the engine aborted it."""

    def is_left(self, now_s: float) -> bool:
        """True once its client has gone away."""
        return now_s >= self.leaves_s
