"""The body that Alertmanager sends to webhooks, version 4: its receivers take ours unchanged."""

import hashlib

import msgspec

from exporters.outputs.formats.alerts import STILL_OPEN, annotations, ended_at, labels
from exporters.outputs.formats.times import rfc3339
from exporters.outputs.notification import Notification


def encode(notification: Notification, *, receiver: str) -> bytes:
    """Return a group of one alert; `receiver` is the name of the output."""
    told, named = annotations(notification), labels(notification)
    ended = ended_at(notification)
    status = "firing" if ended is None else "resolved"
    alert = {
        "status": status,
        "labels": named,
        "annotations": told,
        "startsAt": rfc3339(notification.opened_at_ms),
        "endsAt": STILL_OPEN if ended is None else ended,
        "generatorURL": notification.link or "",
        "fingerprint": _fingerprint(named),
    }
    return msgspec.json.encode(
        {
            "version": "4",
            "groupKey": f'{{}}:{{incident="{notification.incident_id}"}}',
            "truncatedAlerts": 0,
            "status": status,
            "receiver": receiver,
            "groupLabels": {"incident": notification.incident_id},
            "commonLabels": named,
            "commonAnnotations": told,
            "externalURL": notification.link or "",
            "alerts": [alert],
        }
    )


def _fingerprint(named: dict[str, str]) -> str:
    """Return 16 hexadecimal digits, the same for the same labels."""
    spelled = msgspec.json.encode(sorted(named.items()))
    return hashlib.blake2b(spelled, digest_size=8).hexdigest()
