"""What checks know besides the engine: its peers, and what the operator states."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from detector.check.engine import Engine

VOUCHED: Final[Mapping[str, str]] = {
    "salts": "a gateway sets cache_salt or extra_key to the tenant in every request",
    "request-ids": "a gateway sets the ids of requests; those of clients do not pass",
    "closed-endpoints": "clients reach the engine's inference calls and nothing else",
    "single-tenant": "one tenant alone is served",
    "text-only": "no images, sound or video are served",
    "tap": "`bleedwatch run tap` stands before the engine",
}
"""What no file tells, by the word that states it."""


class Scope(NamedTuple):
    """Beside an engine: all engines that were given, `vouched` words, mean tokens of a request."""

    engines: Sequence[Engine]
    vouched: frozenset[str] = frozenset()
    mean_tokens: int | None = None

    def vouches(self, word: str) -> bool:
        """Tell whether the operator states something."""
        return word in self.vouched

    def peers(self, engine: Engine, role: str) -> list[Engine]:
        """Return the engines of another role that serve the same model by the same program."""
        return [
            one
            for one in self.engines
            if one.role == role and one.kind == engine.kind and _same_model(one, engine)
        ]


def _same_model(one: Engine, other: Engine) -> bool:
    return not one.model_name or not other.model_name or one.model_name == other.model_name
