"""What the checks of a probe share: two tenants, the engines, canaries, and lengths that fit."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from detector.probe.asking import Asker, Heard
from detector.probe.canaries import Canaries, Echo
from detector.probe.dialects import Question
from detector.probe.engines import Engines

A: Final = 0
B: Final = 1

SHORT_TOKENS: Final = 256
"""Of a short prompt: several blocks in every engine, read in at once."""

ANSWER_TOKENS: Final = 64
"""Of an answer that is scanned: room for a stretch of a canary behind words of its own."""

LONG_TOKENS: Final = 512
"""Of an answer that others run beside: seconds on a real engine."""


class Surfaced(NamedTuple):
    """A canary of A in an answer to B: during which check, in which answer, and where."""

    check: str
    request_id: str
    prompt_tokens: int
    answer_tokens: int
    echoes: tuple[Echo, ...]


@dataclass(kw_only=True)
class Bench:
    """One endpoint under test. `pool_tokens` is the configured pool, None if it is not given."""

    asker: Asker
    engines: Engines
    rng: Random
    pool_tokens: int | None = None
    settle_s: float = 40.0
    has_salts: bool = True
    """Whether requests carry the salt of their tenant; else a gateway tells tenants apart."""
    where: str = ""
    surfaced: list[Surfaced] = field(default_factory=list)
    canaries: Canaries = field(init=False)
    salts: tuple[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.canaries = Canaries(self.rng)
        made = tuple(f"probe-{self.rng.getrandbits(64):016x}" for _ in (A, B))
        self.salts = (made[A], made[B]) if self.has_salts else ("", "")

    @property
    def limit(self) -> int | None:
        """Length of the shortest prompt that must be refused, None if nothing tells it."""
        known = (self.engines.limits.refused_from, self.pool_tokens)
        return min((one for one in known if one is not None), default=None)

    @property
    def pool(self) -> int | None:
        """Tokens of the smallest pool, as configured or told."""
        return self.pool_tokens or self.engines.limits.pool_tokens

    @property
    def short(self) -> int:
        """Length of a short prompt: half of a tiny context at most."""
        return min(SHORT_TOKENS, (self.limit or SHORT_TOKENS * 2) // 2)

    def answer(self, wanted: int) -> int:
        """Return how long an answer behind a short prompt may be."""
        return max(1, min(wanted, (self.limit or wanted + self.short + 8) - self.short - 8))

    def ask(
        self,
        tenant: int,
        prompt: Sequence[int],
        max_tokens: int,
        *,
        temperature: float = 0.0,
        goes_on: bool = False,
        is_left: bool = False,
        patience_s: float | None = None,
    ) -> Heard:
        """Ask as a tenant; `is_left` goes away after the first piece. Raises BudgetError."""
        asked = Question(
            prompt=prompt,
            max_tokens=max_tokens,
            salt=self.salts[tenant],
            temperature=temperature,
            goes_on=goes_on,
            is_streamed=is_left,
        )
        return self.asker.ask(asked, tenant, patience_s=patience_s)
