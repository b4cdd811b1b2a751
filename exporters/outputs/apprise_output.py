"""The output to everything else, through Apprise: chats, pagers, mail, text messages."""

import logging
import threading
from collections.abc import Callable
from typing import Final

import apprise

from detector.errors import SettingsError
from detector.finding import Severity
from exporters.outputs.contract import Delivered, Outcome, Retry
from exporters.outputs.notification import Notification
from exporters.outputs.settings import AppriseSettings
from exporters.secret_file import read_lines

COLOURS: Final = {
    Severity.INFO: apprise.NotifyType.INFO,
    Severity.LOW: apprise.NotifyType.WARNING,
    Severity.MEDIUM: apprise.NotifyType.WARNING,
    Severity.HIGH: apprise.NotifyType.FAILURE,
    Severity.CRITICAL: apprise.NotifyType.FAILURE,
}
"""The kinds of Apprise, by which services colour what they show."""

DEADLINE_S: Final = 12.0
"""How long a notification may take as a whole. Apprise bounds each wait for a byte (4 s), not the
answer; a lane that sends for longer than its lease has left would send beside another process."""

_LOOKALIKES: Final = str.maketrans({"<": "\u2039", ">": "\u203a", "@": "\uff20"})
"""What begins a mention or a link in chats, and what is read as the same by people."""


class _Sending(threading.Thread):
    """One call of the services, about one notification; a process ends without waiting for it."""

    def __init__(self, about: str, notify: Callable[[], Outcome]) -> None:
        super().__init__(name="apprise", daemon=True)
        self.about = about
        self.outcome: Outcome = Retry("the service failed")
        self._notify = notify

    def run(self) -> None:
        """Call them."""
        self.outcome = self._notify()


class AppriseOutput:
    """Sends title and text to every URL of a file; delivered once all of them took it.

    Services know no idempotency id: what must be tried again because one of them was away comes
    twice to the others. Give each an output of its own where that matters. What takes longer than
    DEADLINE_S goes on by itself and is asked for again: it is not sent anew before it has ended.
    Raises SettingsError for a file that cannot be used.
    """

    resend_ms: int | None = None

    def __init__(self, settings: AppriseSettings) -> None:
        self.name = settings.name
        self._path = settings.urls_file
        self._where = f"output {settings.name}.urls_file"
        logging.getLogger("apprise").disabled = True  # its lines quote URLs, which are secrets
        self._late: _Sending | None = None
        self._services()

    def send(self, notification: Notification, *, at_ms: int) -> Outcome:  # noqa: ARG002 - services stamp
        """Send the sentence, the numbers and the link."""
        sending = self._late
        if sending is None or (not sending.is_alive() and sending.about != notification.id):
            sending = _Sending(notification.id, lambda: self._notify(notification))
            sending.start()
        sending.join(DEADLINE_S)
        self._late = sending if sending.is_alive() else None
        if self._late is not None:
            return Retry("no whole answer in time")
        if sending.about != notification.id:
            return Retry("the notification before it was slow")
        return sending.outcome

    def _notify(self, notification: Notification) -> Outcome:
        try:
            services = self._services()
            taken = services.notify(
                title=_title(notification),
                body=_text(notification),
                notify_type=_colour(notification),
                body_format=apprise.NotifyFormat.TEXT,
            )
        except SettingsError:
            return Retry("the file of URLs cannot be used")
        except Exception:  # noqa: BLE001 - services are plug-ins, and what they raise may quote URLs
            return Retry("the service failed")
        return Delivered("taken") if taken else Retry("not taken by every service")

    def close(self) -> None:
        """Nothing stays open between two notifications."""

    def _services(self) -> apprise.Apprise:
        services = apprise.Apprise()
        for number, url in enumerate(read_lines(self._path, where=self._where), start=1):
            if not services.add(str(url)):
                raise SettingsError(
                    f"URL {number} of the file is none that Apprise knows, or lacks a part",
                    where=self._where,
                    hint="see Apprise's page of the service for the form of its URL",
                )
        return services


def _colour(notification: Notification) -> apprise.NotifyType:
    return (
        apprise.NotifyType.SUCCESS if notification.is_resolved else COLOURS[notification.severity]
    )


def _title(notification: Notification) -> str:
    about = ", ".join(notification.kv_pools) or "bleedwatch"
    return _inert(f"[{notification.severity}] {notification.kind}: {about}")


def _text(notification: Notification) -> str:
    lines = [_inert(notification.title), _inert(notification.reason)]
    if notification.incident_id:
        lines.append(
            f"Incident {notification.incident_id}: {notification.finding_count} findings, "
            f"rules {', '.join(notification.rules)}, confidence {notification.confidence}"
        )
    if notification.link is not None:
        lines.append(notification.link)
    return "\n".join(lines)


def _inert(text: str) -> str:
    """Return text on one line in which nobody is called and nothing can be clicked.

    Clients choose request ids, and some services take `<!channel>`, `@everyone` and URLs in what
    they are given for what they mean. Whoever needs the exact name finds it behind the link.
    """
    line = "".join(one if one.isprintable() else "?" for one in text)
    return line.translate(_LOOKALIKES).replace("://", ": //").replace("](", "] (")
