"""Makes outputs from their settings. What is made of a library is imported when it is asked for."""

import logging
from collections.abc import Callable

from exporters.outputs.contract import Delivered, Outcome, Output
from exporters.outputs.notification import Notification
from exporters.outputs.settings import (
    AlertmanagerSettings,
    AnyOutput,
    AppriseSettings,
    KafkaOutputSettings,
    StdoutSettings,
    WebhookSettings,
)

KafkaMaker = Callable[[KafkaOutputSettings], Output]

_log = logging.getLogger(__name__)


class DryRunOutput:
    """Says in the log what would be sent, and sends nothing."""

    resend_ms: int | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    def send(self, notification: Notification, *, at_ms: int) -> Outcome:  # noqa: ARG002 - not sent
        """Log ids and words of ours only."""
        _log.info(
            "output %s would be told: %s of %s (%s)",
            self.name,
            notification.kind,
            notification.incident_id or "no incident",
            notification.severity,
        )
        return Delivered("dry run: nothing was sent")

    def close(self) -> None:
        """Nothing is open."""


def build(settings: AnyOutput, *, kafka: KafkaMaker) -> Output:
    """Make one output; `kafka` makes those that publish.

    Raises SettingsError for a file that cannot be used, also for a dry run.
    """
    made = _made(settings, kafka)
    if not settings.dry_run:
        return made
    made.close()
    return DryRunOutput(settings.name)


def _made(settings: AnyOutput, kafka: KafkaMaker) -> Output:
    match settings:
        case AlertmanagerSettings():
            from exporters.outputs.alertmanager import AlertmanagerOutput  # noqa: PLC0415

            return AlertmanagerOutput(settings)
        case WebhookSettings():
            from exporters.outputs.webhook import WebhookOutput  # noqa: PLC0415

            return WebhookOutput(settings)
        case AppriseSettings():
            from exporters.outputs.apprise_output import AppriseOutput  # noqa: PLC0415

            return AppriseOutput(settings)
        case StdoutSettings():
            from exporters.outputs.lines import LinesOutput  # noqa: PLC0415

            return LinesOutput(settings)
        case KafkaOutputSettings():
            return kafka(settings)
