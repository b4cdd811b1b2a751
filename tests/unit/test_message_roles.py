"""Roles of messages name the spans of a prompt only where the two fit one to one."""

import pytest

from detector.model import Role, Span
from ingest.message_roles import told_by


def spans(*roles: Role) -> tuple[Span, ...]:
    """Return spans of two tokens with a token of the template before each."""
    return tuple(
        span
        for at, role in enumerate(roles)
        for span in (Span(Role.TEMPLATE, 3 * at, 3 * at + 1), Span(role, 3 * at + 1, 3 * at + 3))
    )


@pytest.mark.parametrize(
    ("told", "marked", "named"),
    [
        (("user", "tool"), (Role.USER, Role.USER), (Role.USER, Role.TOOL)),
        (("system", "user"), (Role.SYSTEM, Role.USER), (Role.SYSTEM, Role.USER)),
        (("user",), (Role.SYSTEM, Role.USER), (Role.SYSTEM, Role.USER)),
        (
            ("user", "tool", "tool"),
            (Role.SYSTEM, Role.USER, Role.USER),
            (Role.SYSTEM, Role.USER, Role.TOOL),
        ),
    ],
)
def test_spans_get_the_roles_of_the_messages(
    told: tuple[str, ...], marked: tuple[Role, ...], named: tuple[Role, ...]
) -> None:
    assert told_by(told, spans(*marked)) == spans(*named)


@pytest.mark.parametrize("told", [("user",), ("user", "owner"), ("user", "user", "user"), ()])
def test_what_does_not_fit_changes_nothing(told: tuple[str, ...]) -> None:
    marked = spans(Role.USER, Role.USER)
    assert told_by(told, marked) == marked
    assert told_by(told, ()) == ()
