"""The output to Alertmanager's API v2: an alert for each incident, sent again while it is open.

Alertmanager ends an alert that it is not told again, so each says until when it holds.
"""

from typing import Final

import msgspec

from exporters.outputs.contract import Outcome
from exporters.outputs.formats.alerts import annotations, ended_at, labels
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
        ended = ended_at(notification)
        alert = {
            "labels": labels(notification),
            "annotations": annotations(notification),
            "startsAt": rfc3339(notification.opened_at_ms),
            "endsAt": rfc3339(at_ms + HOLDS_FOR * self._every_ms) if ended is None else ended,
        }
        if notification.link is not None:
            alert["generatorURL"] = notification.link
        return self._post(msgspec.json.encode([alert]), at_ms=at_ms, path=PATH)
