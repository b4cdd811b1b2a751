"""A small deterministic tokenizer: words, digits, punctuation and indents become ids.

The vocabulary is built from texts in the order they come, so one Python release has one
vocabulary whatever the seed of the traffic. Ids lie below 151,643; the ChatML markers and role
words have the ids of the Qwen family, so a reader of that template finds the same spans.
"""

import re
from collections.abc import Iterable

IM_START = 151644
IM_END = 151645
NEWLINE = 198
SYSTEM = 8948
USER = 872
ASSISTANT = 77091

VOCABULARY_LIMIT = 151_643
"""First id that may not be a text token: the Qwen family's special tokens start here."""

_RESERVED = {"\n": NEWLINE, "system": SYSTEM, "user": USER, "assistant": ASSISTANT}
_SPECIAL = {IM_START: "<|im_start|>", IM_END: "<|im_end|>"}
_BYTES = 256

_PIECE = re.compile(
    r" ?[A-Z]?[a-z]{1,12}"  # a word, with the blank before it; very long words in pieces
    r"| ?[A-Z]{1,6}(?![a-z])"  # an acronym or constant
    r"| ?\d"  # numbers digit by digit, as the Qwen family does
    r"|\n"
    r"| +(?= )"  # an indent, without the blank that belongs to the next word
    r"| ?[^\sA-Za-z\d]{1,3}"  # punctuation
    r"|.",
    re.DOTALL,
)


class Tokenizer:
    """Text to ids and back, without loss: what is not in the vocabulary goes byte by byte."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = dict(_RESERVED)
        taken = set(_RESERVED.values())
        self._free = iter(number for number in range(VOCABULARY_LIMIT) if number not in taken)
        self._bytes = tuple(next(self._free) for _ in range(_BYTES))
        self._pieces = {number: piece.encode() for piece, number in _RESERVED.items()}
        self._pieces |= {number: bytes((value,)) for value, number in enumerate(self._bytes)}
        self._pieces |= {number: marker.encode() for number, marker in _SPECIAL.items()}

    def learn(self, text: str) -> list[int]:
        """Ids of `text`, after giving each of its new pieces the next free id, if one is left."""
        pieces = _PIECE.findall(text)
        for piece in dict.fromkeys(pieces):
            if piece not in self._ids and (number := next(self._free, None)) is not None:
                self._ids[piece] = number
                self._pieces[number] = piece.encode("utf-8", "replace")
        return self._look_up(pieces)

    def __len__(self) -> int:
        """Return the number of ids in use, markers included."""
        return len(self._pieces)

    def known_ids(self) -> list[int]:
        """All ids of pieces longer than one byte, ascending: what a random token is drawn from."""
        return sorted(self._ids.values())

    def encode(self, text: str) -> list[int]:
        """Ids of `text`; a marker spelt out in it is text, never a marker."""
        return self._look_up(_PIECE.findall(text))

    def _look_up(self, pieces: list[str]) -> list[int]:
        known = self._ids
        try:
            return [known[piece] for piece in pieces]
        except KeyError:
            ids: list[int] = []
            for piece in pieces:
                number = known.get(piece)
                spelt = piece.encode("utf-8", "replace") if number is None else b""
                ids.extend([self._bytes[value] for value in spelt] if number is None else [number])
            return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of `ids`, markers spelt out; an id out of the vocabulary is U+FFFD."""
        unknown = "\ufffd".encode()
        joined = b"".join(self._pieces.get(number, unknown) for number in ids)
        return joined.decode("utf-8", "replace")
