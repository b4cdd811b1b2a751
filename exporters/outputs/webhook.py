"""The output to webhooks: ours or Alertmanager's body, signed as Standard Webhooks says."""

from detector.errors import SettingsError
from exporters.outputs.contract import Outcome, Retry
from exporters.outputs.formats import alertmanager_v4, native
from exporters.outputs.http_output import HttpOutput
from exporters.outputs.notification import Notification
from exporters.outputs.settings import WebhookSettings
from exporters.outputs.signing import read_secrets, sign


class WebhookOutput(HttpOutput):
    """Posts to one receiver. `webhook-id` is the idempotency id, the same for every repeat."""

    def __init__(self, settings: WebhookSettings) -> None:
        super().__init__(settings)
        self._webhook = settings
        self._secrets()

    def send(self, notification: Notification, *, at_ms: int) -> Outcome:
        """Post the notification, signed with every secret there is now."""
        if self._webhook.format == "native":
            body = native.encode(notification)
        else:
            body = alertmanager_v4.encode(notification, receiver=self.name)
        try:
            secrets = self._secrets()
        except SettingsError:
            return Retry("the secrets cannot be read")
        headers = sign(body, message_id=notification.id, at_ms=at_ms, secrets=secrets)
        return self._post(body, at_ms=at_ms, headers=headers)

    def _secrets(self) -> list[bytes]:
        path = self._webhook.secrets_file
        return [] if path is None else read_secrets(path, where=f"{self._where}.secrets_file")
