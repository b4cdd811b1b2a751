"""The output to Alertmanager's API v2: an alert for each incident, sent again while it is open.

Alertmanager ends an alert that it is not told again, so each says until when it holds.
"""

from typing import Final

import msgspec

from exporters.outputs.contract import Outcome
from exporters.outputs.formats.alerts import annotations, labels
from exporters.outputs.formats.times import rfc3339
from exporters.outputs.http_output import HttpOutput
from exporters.outputs.notification import Notification
from exporters.outputs.settings import AlertmanagerSettings

PATH: Final = "/api/v2/alerts"

HOLDS_FOR: Final = 4
"""An alert holds for this many intervals of re-sending, as with Prometheus: three may be lost."""


class AlertmanagerOutput(HttpOutput):
    """Sends to one Alertmanager."""

    def __init__(self, settings: AlertmanagerSettings) -> None:
        super().__init__(settings)
        self.resend_ms = self._every_ms = settings.resend_ms

    def send(self, notification: Notification, *, at_ms: int) -> Outcome:
        """Post the alert; a resolved one has its end."""
        end_ms = self._end_ms(notification, at_ms)
        alert = {
            "labels": labels(notification),
            "annotations": annotations(notification),
            "startsAt": rfc3339(_begin_ms(notification, end_ms)),
            "endsAt": rfc3339(end_ms),
        }
        if notification.link is not None:
            alert["generatorURL"] = notification.link
        return self._post(msgspec.json.encode([alert]), at_ms=at_ms, path=PATH)

    def _end_ms(self, notification: Notification, at_ms: int) -> int:
        if not notification.is_resolved:
            return at_ms + HOLDS_FOR * self._every_ms
        resolved_ms = notification.resolved_at_ms
        return notification.created_at_ms if resolved_ms is None else resolved_ms


def _begin_ms(notification: Notification, end_ms: int) -> int:
    """Return the begin, never behind the end: Alertmanager refuses such an alert for good.

    An incident opens by the clock of its engine, which may be ahead of ours that it ends by.
    """
    return min(notification.opened_at_ms, notification.created_at_ms, end_ms)
