"""The official verifier accepts what we sign, during a rotation too, and nothing that changed."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from detector.errors import SettingsError
from exporters.outputs.settings import WebhookSettings
from exporters.outputs.signing import read_secrets, sign
from exporters.outputs.webhook import WebhookOutput
from tests.alerts.kit import notification, secret_file
from tests.fakes.receiver import Call, receiver

OLD = "whsec_" + "b2xkIHNlY3JldCBvbGQgc2VjcmV0IG9sZCBzZWNyZXQh"
NEW = "whsec_" + "bmV3IHNlY3JldCBuZXcgc2VjcmV0IG5ldyBzZWNyZXQh"
OTHER = "whsec_" + "c29tZXRoaW5nIGVsc2Ugc29tZXRoaW5nIGVsc2UgLi4u"


def sent(folder: Path, *secrets: str, at_ms: int | None = None) -> Call:
    """Send one notification, signed with these; return it as it arrived."""
    path = secret_file(folder, "secrets", "\n".join(("# newest first", *secrets, "")))
    with receiver() as there:
        settings = WebhookSettings(
            kind="webhook", name="hook", url=there.url, allow_private=True, secrets_file=path
        )
        now_ms = time.time_ns() // 1_000_000 if at_ms is None else at_ms
        WebhookOutput(settings).send(notification(), at_ms=now_ms)
        return there.calls[0]


def verified(call: Call, secret: str, body: bytes | None = None) -> object:
    return Webhook(secret).verify(call.body if body is None else body, dict(call.headers))


def test_the_verifier_accepts_it_and_reads_the_payload(tmp_path: Path) -> None:
    payload = verified(sent(tmp_path, NEW), NEW)
    assert isinstance(payload, dict)
    assert payload["type"] == "incident.opened"
    assert payload["data"]["incident"] == "inc-1"


def test_during_a_rotation_receivers_with_either_secret_accept_it(tmp_path: Path) -> None:
    call = sent(tmp_path, NEW, OLD)
    assert verified(call, NEW) == verified(call, OLD)
    with pytest.raises(WebhookVerificationError):
        verified(call, OTHER)


def test_after_a_rotation_the_old_secret_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WebhookVerificationError):
        verified(sent(tmp_path, NEW), OLD)


def test_any_byte_that_changes_is_noticed(tmp_path: Path) -> None:
    call = sent(tmp_path, NEW)
    for position in range(0, len(call.body), 7):
        changed = bytearray(call.body)
        changed[position] ^= 1
        with pytest.raises(WebhookVerificationError):
            verified(call, NEW, bytes(changed))


@pytest.mark.parametrize("header", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_header_that_changes_is_noticed(tmp_path: Path, header: str) -> None:
    call = sent(tmp_path, NEW)
    value = call.headers[header]
    last = "1" if value[-1] != "1" else "2"
    headers = {**call.headers, header: value[:-4] + last * 4}
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(call.body, headers)


@pytest.mark.parametrize("minutes", [-10, 10])
def test_another_time_is_refused(tmp_path: Path, minutes: int) -> None:
    at_ms = time.time_ns() // 1_000_000 + minutes * 60_000
    with pytest.raises(WebhookVerificationError):
        verified(sent(tmp_path, NEW, at_ms=at_ms), NEW)


def test_a_secret_that_is_replaced_is_used_for_the_next(tmp_path: Path) -> None:
    path = secret_file(tmp_path, "rotating", OLD)
    with receiver() as there:
        output = WebhookOutput(
            WebhookSettings(
                kind="webhook", name="hook", url=there.url, allow_private=True, secrets_file=path
            )
        )
        now_ms = time.time_ns() // 1_000_000
        for secrets in (OLD, f"{NEW}\n{OLD}", NEW):
            secret_file(tmp_path, "rotating", secrets)
            output.send(notification(), at_ms=now_ms)
        before, during, after = there.calls
    assert verified(before, OLD) == verified(during, OLD) == verified(during, NEW)
    assert verified(after, NEW) == verified(before, OLD)
    with pytest.raises(WebhookVerificationError):
        verified(after, OLD)


def test_the_signature_is_that_of_the_official_package(tmp_path: Path) -> None:
    body, at = b'{"type":"test.ping"}', datetime(2027, 1, 15, 8, 0, 0, tzinfo=UTC)
    (secret,) = read_secrets(secret_file(tmp_path, "one", NEW), where="here")
    ours = sign(body, message_id="ntf-1", at_ms=int(at.timestamp() * 1000), secrets=[secret])
    assert ours["webhook-signature"] == Webhook(NEW).sign("ntf-1", at, body.decode())


@pytest.mark.parametrize(
    "text", ["", "\n# nothing\n", "whsec_", "whsec_c2hvcnQ=", "no prefix at all", "whsec_%%%%"]
)
def test_what_is_no_secret_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    path = secret_file(tmp_path, "bad", text)
    with pytest.raises(SettingsError) as caught:
        read_secrets(path, where="output hook.secrets_file")
    assert caught.value.where == "output hook.secrets_file"
    assert not [line for line in text.split() if len(line) > 6 and line in str(caught.value)]
    assert path not in str(caught.value)


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = Path(secret_file(tmp_path, "open", NEW))
    path.chmod(0o644)
    with pytest.raises(SettingsError, match="others may use the file"):
        read_secrets(str(path), where="output hook.secrets_file")
