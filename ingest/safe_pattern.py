"""Regular expressions from a settings file, limited to those that cannot run away on hostile input.

Request ids come from clients. A pattern is accepted only when it is made of plain items and the
number of ways to match it, over the longest text, is bounded by a constant.
"""

import re
from typing import Final

from ingest.limits import MAX_TEXT_CHARS

MAX_PATTERN_CHARS: Final = 256

MAX_WAYS: Final = 2**19
"""Two open-ended repeats over 512 characters and one choice: a few milliseconds at worst."""

_TOKEN: Final = re.compile(
    r"(?P<item>\\[dDwWsS]|\\[^0-9A-Za-z]|\[\^?\]?(?:\\[dDwWsS]|\\[^0-9A-Za-z]|[^\]\\\[])*\]"
    r"|[^\\\[\](){}|*+?^$])"
    r"(?P<repeat>[*+?]|\{(?P<least>\d{0,3})(?P<comma>,?)(?P<most>\d{0,3})\})?(?P<kind>[+?])?"
    r"|(?P<open>\((?:\?P<[A-Za-z_]\w*>|\?:)?)|(?P<close>\))(?![*+?{])|(?P<bar>\|)|[\^$]"
)


def compile_safe(pattern: str, *, group: str | None = None) -> re.Pattern[str]:
    """Compile a pattern that has the named group `group`, if one is asked for.

    Raises ValueError, with what to write instead, for a pattern that is malformed, too long, has
    look-around, back-references or repeated groups, or could take too many ways to match.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ValueError(f"the pattern is longer than {MAX_PATTERN_CHARS} characters")
    ways = _ways(pattern)
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"the pattern is malformed: {error}") from None
    if group is not None and group not in compiled.groupindex:
        raise ValueError(f"the pattern needs a group named {group}: (?P<{group}>...)")
    if ways > MAX_WAYS:
        raise ValueError(
            "the pattern has too many open-ended repeats; make them possessive, as in [^-]++"
        )
    return compiled


def _ways(pattern: str) -> int:
    """Bound the ways to match `pattern` from one start over a text of MAX_TEXT_CHARS."""
    ways = 1
    position = 0
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        if token is None:
            raise ValueError(
                f"the pattern is not supported at character {position + 1}: use literals, classes, "
                "groups and |, and repeat single characters only"
            )
        position = token.end()
        if token["bar"]:
            ways *= 2
        elif token["repeat"] and token["kind"] != "+":
            ways *= _choices(token)
    return ways


def _choices(token: re.Match[str]) -> int:
    """How many lengths a backtracking repeat can take."""
    if token["repeat"] == "?":
        return 2
    if token["repeat"] in ("*", "+"):
        return MAX_TEXT_CHARS
    if not token["comma"]:
        return 1
    most = int(token["most"] or MAX_TEXT_CHARS)
    return max(1, most - int(token["least"] or 0) + 1)
