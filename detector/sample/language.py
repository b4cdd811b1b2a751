"""The language of the sample traffic: tokenizer, passages as ids, and a babbler for each style."""

from dataclasses import dataclass
from pathlib import Path

from detector.sample.babble import Babbler
from detector.sample.corpus import PassageKind, collect
from detector.sample.tokenizer import Tokenizer

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """All that text is made of; the same for every seed, so load it once for several runs."""

    tokenizer: Tokenizer
    prose_passages: tuple[Ids, ...]
    code_passages: tuple[Ids, ...]
    prose: Babbler
    code: Babbler


def load_language(library: Path | None = None) -> Language:
    """Read the corpus of the running Python, or of `library`, and learn its vocabulary.

    Takes about a second. Raises InputError when the sources are not there.
    """
    tokenizer = Tokenizer()
    prose: list[Ids] = []
    code: list[Ids] = []
    for passage in collect(library):
        ids = tuple(tokenizer.learn(passage.text))
        (code if passage.kind is PassageKind.CODE else prose).append(ids)
    newline = tokenizer.encode("\n")
    sentence_end = tokenizer.learn(".")
    return Language(
        tokenizer=tokenizer,
        prose_passages=tuple(prose),
        code_passages=tuple(code),
        prose=Babbler(prose, stops=frozenset(newline + sentence_end)),
        code=Babbler(code, stops=frozenset(newline)),
    )
