"""The door to receivers: bounded in time and size, never redirected, public addresses only."""

import time
from pathlib import Path

import pytest

from detector.errors import SettingsError
from exporters.outputs.addresses import is_public
from exporters.outputs.contract import Delivered, Outcome, Rejected, Retry
from exporters.outputs.http_door import LONGEST_WAIT_MS, HttpDoor, retry_after_ms
from tests.alerts.kit import NOW_MS
from tests.fakes.receiver import Manner, Receiver, receiver
from tests.kafka.security import Security


def post(to: str, *, allow_private: bool = True, timeout_ms: int = 400) -> Outcome:
    door = HttpDoor(
        timeout_ms=timeout_ms, allow_private=allow_private, ca_file=None, where="output hook"
    )
    return door.post(to, b"{}", {"content-type": "application/json"}, at_ms=NOW_MS)


@pytest.mark.parametrize(
    ("manner", "expected"),
    [
        ("takes", Delivered("204")),
        ("fails", Retry("500")),
        ("busy", Retry("429", after_ms=20_000)),
        ("gone", Rejected("410", gone=True)),
        ("refuses", Rejected("400")),
        ("breaks_off", Retry("the answer broke off")),
        ("floods", Delivered("200")),
        ("slow", Retry("timed out")),
    ],
)
def test_what_a_receiver_does_becomes_an_outcome(manner: Manner, expected: Outcome) -> None:
    with receiver(manner) as there:
        assert post(there.url) == expected
        assert [call.path for call in there.calls] == ["/hook"]


def test_a_port_that_is_closed_is_tried_again() -> None:
    with receiver() as there:
        url = there.url
    assert post(url) == Retry("no connection")


def test_a_redirect_is_not_followed() -> None:
    with receiver() as inside, receiver("redirects", elsewhere=inside.url) as there:
        assert post(there.url) == Retry("307: redirects are not followed")
        assert inside.calls == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"])
def test_private_addresses_are_refused_by_number_and_by_name(host: str) -> None:
    with receiver() as there:
        to = f"http://{host}:{there.port}/hook"
        assert post(to, allow_private=False) == Retry("private address refused")
        assert there.calls == []


def test_a_name_that_does_not_exist_is_tried_again() -> None:
    assert post("https://no-such-host.invalid/hook") == Retry("no such address")


def test_the_host_header_is_the_name_and_not_the_address() -> None:
    with receiver() as there:
        assert post(f"http://localhost:{there.port}/hook") == Delivered("204")
        assert there.calls[0].headers["host"] == f"localhost:{there.port}"


def test_a_receiver_that_answers_drop_by_drop_ends_in_time() -> None:
    with receiver("drips") as there:
        began = time.monotonic()
        assert post(there.url, timeout_ms=200) == Retry("timed out")
        assert time.monotonic() - began < 2


def test_plain_http_where_tls_is_spoken_fails_as_tls() -> None:
    with receiver() as there:
        assert post(f"https://127.0.0.1:{there.port}/hook", timeout_ms=5_000) == Retry("TLS failed")


def test_a_receiver_that_comes_back_is_found_on_the_same_port() -> None:
    there = Receiver()
    there.open()
    there.behave("down")
    assert post(there.url) == Retry("no connection")
    there.behave("takes")
    assert post(there.url) == Delivered("204")
    there.close()


@pytest.mark.parametrize(
    ("host", "authority", "expected"),
    [
        ("127.0.0.1", "ca_file", Delivered("204")),
        ("127.0.0.1", "other_ca_file", Retry("TLS failed")),
        ("localhost", "ca_file", Retry("TLS failed")),  # the certificate is of 127.0.0.1
    ],
)
def test_the_certificate_must_be_of_the_name_and_of_a_trusted_authority(
    kafka_security: Security, host: str, authority: str, expected: Outcome
) -> None:
    with receiver(certificate=kafka_security.server_file) as there:
        ca_file = str(getattr(kafka_security, authority))
        door = HttpDoor(timeout_ms=5_000, allow_private=True, ca_file=ca_file, where="output hook")
        assert door.post(f"https://{host}:{there.port}/hook", b"{}", {}, at_ms=NOW_MS) == expected


def test_authorities_that_cannot_be_read_are_told_with_their_setting(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        HttpDoor(
            timeout_ms=400,
            allow_private=False,
            ca_file=str(tmp_path / "none.pem"),
            where="output hook",
        )
    assert caught.value.where == "output hook.ca_file"


def test_nothing_is_logged_that_quotes_a_url(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with receiver() as there:
        post(f"{there.url}/very-secret")
    assert "very-secret" not in caplog.text
    assert there.calls[0].path == "/hook/very-secret"


@pytest.mark.parametrize(
    ("header", "wait_ms"),
    [
        (None, None),
        ("0", 0),
        ("120", 120_000),
        ("99999999999999999999", LONGEST_WAIT_MS),
        ("Fri, 15 Jan 2027 08:00:30 GMT", 30_000),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0),
        ("soon", None),
        ("-5", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, wait_ms: int | None) -> None:
    assert retry_after_ms(header, NOW_MS) == wait_ms


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("::ffff:8.8.8.8", True),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("fe80::1", False),
        ("fd00::1", False),
        ("::ffff:127.0.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False),
        ("ff02::1", False),
        ("localhost", False),
    ],
)
def test_public_addresses(address: str, public: bool) -> None:
    assert is_public(address) is public
