"""What a MinHash sketch was made with: only sketches of one header may be compared."""

from dataclasses import dataclass, fields
from typing import Final, Literal

from detector.errors import SketchError
from detector.sketch.shingle import SHINGLE_TOKENS

NUM_PERM: Final = 128
"""Values per sketch: the estimate of a Jaccard similarity J has a standard deviation of
sqrt(J * (1 - J) / 128), 0.044 at most, in 512 bytes."""

SEED: Final = 1
"""Seed of the permutations, datasketch's default. It is not a secret: the tokens are keyed."""


@dataclass(frozen=True, slots=True)
class SketchHeader:
    """The parameters that every sketch carries.

    `scheme` names the permutations, `num_perm` counts them, `seed` draws them, `k` is the length
    of a shingle in tokens, and `key_id` names the secret under which the tokens were hashed.
    """

    scheme: Literal["affine32"] = "affine32"
    num_perm: int = NUM_PERM
    seed: int = SEED
    k: int = SHINGLE_TOKENS
    key_id: str = ""

    def require_same(self, other: "SketchHeader") -> None:
        """Raise SketchError, which names every field that differs, unless both are equal."""
        differing = [
            f"{field.name} {getattr(self, field.name)!r} and {getattr(other, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != getattr(other, field.name)
        ]
        if differing:
            raise SketchError(
                f"two sketches were made differently: {', '.join(differing)}",
                hint="make both with the same settings and the same secret",
            )
