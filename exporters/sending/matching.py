"""Which incidents an output is told of, and which a silence is about."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from exporters.incidents.model import confidence_rank
from exporters.outputs.notification import Notification
from exporters.outputs.settings import Matchers
from exporters.store.silences import Silence


def wants(when: Matchers, notification: Notification) -> bool:
    """Whether an output with these matchers is told."""
    return (
        notification.severity.rank >= when.severity.rank
        and confidence_rank(notification.confidence) >= confidence_rank(when.confidence)
        and _any_of(when.rules, notification.rules)
        and _any_of(when.tenants, notification.tenants)
        and _any_of(when.kv_pools, notification.kv_pools)
    )


def silenced_until_ms(silences: Iterable[Silence], notification: Notification) -> int | None:
    """Return when the last of the silences about it ends; None if there is none.

    `silences` are those that hold now. What is not about an incident is never silenced.
    """
    if not notification.incident_id:
        return None
    return max(
        (one.ends_at_ms for one in silences if _is_about(one, notification)),
        default=None,
    )


def _is_about(silence: Silence, notification: Notification) -> bool:
    about = silence.about
    return (
        _any_of(about.incidents, (notification.incident_id,))
        and _any_of(about.rules, notification.rules)
        and _any_of(about.tenants, notification.tenants)
        and _any_of(about.kv_pools, notification.kv_pools)
    )


def _any_of(patterns: tuple[str, ...], names: Iterable[str]) -> bool:
    """Whether a pattern fits a name; no patterns fit everything."""
    if not patterns:
        return True
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)
