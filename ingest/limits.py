"""The bounds of a record: what is longer, later or larger is refused, counted and never cut.

Readers, the door and the wire schema share them, so that what one lets in the next accepts.
"""

from typing import Final

from detector.model import MAX_SEQUENCE_TOKENS, PART_OVERLAP

MAX_TEXT_CHARS: Final = 512
"""Longest tenant, request id, engine, pool or model name. OpenAI and Kubernetes names end at 256;
request ids that carry a tenant prefix and a trace context stay below twice that."""

MAX_TIME_MS: Final = 253_402_300_799_999
"""End of the year 9999, the last instant of RFC 3339; the same span is allowed before zero, since
a file's own event time may be relative."""

MAX_SIDE_TOKENS: Final = 4_194_304
"""Longest prompt or response: four times the longest context on offer (1 M tokens)."""

MAX_PARTS: Final = -(-(MAX_SIDE_TOKENS - PART_OVERLAP) // (MAX_SEQUENCE_TOKENS - PART_OVERLAP))
"""Parts that the longest side is split into (33)."""

MAX_SPANS: Final = 16_384
"""Most role spans of one prompt: a 1,000-turn agent session has about 6,000."""

MAX_COUNT: Final = 2**53 - 1
"""Largest count or token number: what every JSON reader keeps exact (RFC 8259, section 6)."""

MAX_MESSAGE_BYTES: Final = 4 * 2**20
"""Largest message to a broker, unless set otherwise: a whole part (131,072 tokens, 512 KiB of
hashes) with its index and a packed batch of 256 KiB around it fit several times over."""
