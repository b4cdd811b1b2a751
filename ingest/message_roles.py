"""Roles of spans as the messages of a request tell them, where these fit the spans one to one.

Markers say where a message begins; who wrote it the messages know better: templates put answers of
tools into turns of users, and a text may hold markers of its own.
"""

from collections.abc import Sequence

import msgspec

from detector.model import Role, Span


def told_by(roles: Sequence[str], spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Return the spans with the roles of the messages, or as they are where the two do not fit.

    They fit if there are as many spans of text as messages. A template may begin with a system
    message of its own, and may put neighbouring answers of tools into one turn.
    """
    texts = [span for span in spans if span.role is not Role.TEMPLATE]
    for told in (list(roles), _merged(roles)):
        named = _fitting(told, texts)
        if named is not None:
            fresh = iter(named)
            return tuple(
                span
                if span.role is Role.TEMPLATE
                else msgspec.structs.replace(span, role=next(fresh))
                for span in spans
            )
    return spans


def _fitting(roles: list[str], texts: list[Span]) -> list[Role] | None:
    """Return a role for each span of text, None if they do not fit or one is not known."""
    has_own_start = bool(texts) and texts[0].role is Role.SYSTEM and "system" not in roles[:1]
    told = ["system", *roles] if has_own_start else roles
    known = {role.value for role in Role} - {Role.TEMPLATE.value}
    if len(told) != len(texts) or not known.issuperset(told):
        return None
    return [Role(role) for role in told]


def _merged(roles: Sequence[str]) -> list[str]:
    """Return the roles with one for neighbouring answers of tools."""
    return [
        role
        for role, before in zip(roles, ["", *roles], strict=False)
        if role != Role.TOOL or before != Role.TOOL
    ]
