"""Passwords and certificates come from files, and nothing shows what is in them."""

import shutil
import ssl
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from detector.errors import SettingsError
from ingest.kafka_credentials import client_options, load_credentials
from ingest.kafka_settings import KafkaSettings, SecuritySettings
from tests.kafka.security import Security, make_security

SECRET = "s3cr3t-pässword"


@pytest.fixture
def files(tmp_path: Path) -> Security:
    return make_security(tmp_path / "security")


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.touch(mode=0o600)
    path.write_text(f"{SECRET}\nsecond line\n", encoding="utf-8")
    return path


def sasl(password_file: Path | str, **more: str) -> SecuritySettings:
    return SecuritySettings(
        protocol="SASL_PLAINTEXT", username="monitor", password_file=str(password_file), **more
    )


def test_the_password_is_the_first_line_of_its_file(password_file: Path) -> None:
    loaded = load_credentials(sasl(password_file))
    assert (loaded.username, loaded.password) == ("monitor", SECRET)
    assert (loaded.mechanism, loaded.ssl_context) == ("SCRAM-SHA-512", None)


def test_no_printed_form_holds_the_password(password_file: Path) -> None:
    settings = KafkaSettings(security=sasl(password_file))
    loaded = load_credentials(settings.security)
    assert SECRET not in f"{loaded} {loaded!r} {settings!r} {settings.model_dump_json()}"


def test_clients_get_what_the_protocol_needs_and_no_more(files: Security) -> None:
    options = client_options(KafkaSettings(bootstrap_servers="a:1, b:2"))
    assert options["bootstrap_servers"] == ["a:1", "b:2"]
    assert options["security_protocol"] == "PLAINTEXT"
    assert not any(options[name] for name in options if name.startswith(("sasl", "ssl")))
    secure = SecuritySettings(protocol="SSL", ca_file=str(files.ca_file))
    context = client_options(KafkaSettings(security=secure))["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED


@pytest.mark.parametrize("content", [b"", b"\nsecond\n", b"\xff\xfe\n", b"x" * 5000])
def test_a_file_without_a_password_is_refused(password_file: Path, content: bytes) -> None:
    password_file.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        load_credentials(sasl(password_file))
    assert caught.value.where == "kafka.security.password_file"
    assert caught.value.hint


def test_a_password_in_place_of_its_file_is_not_repeated() -> None:
    with pytest.raises(SettingsError, match="no such file") as caught:
        load_credentials(sasl(SECRET))
    assert SECRET not in f"{caught.value} {caught.value!r}"


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o666])
def test_a_password_that_others_may_use_is_refused(password_file: Path, mode: int) -> None:
    password_file.chmod(mode)
    with pytest.raises(SettingsError, match="others may use the file"):
        load_credentials(sasl(password_file))
    password_file.chmod(0o640)
    assert load_credentials(sasl(password_file)).password == SECRET


def test_a_private_key_that_others_may_use_is_refused(files: Security) -> None:
    files.key_file.chmod(0o644)
    with pytest.raises(SettingsError, match="others may use the file") as caught:
        load_credentials(tls(files))
    assert "key_file" in caught.value.where


def tls(files: Security, **changes: str) -> SecuritySettings:
    names = ("ca_file", "cert_file", "key_file")
    given: dict[str, Any] = {name: str(getattr(files, name)) for name in names}
    return SecuritySettings(protocol="SSL", **{**given, **changes})


@pytest.mark.parametrize("setting", ["ca_file", "cert_file", "key_file"])
@pytest.mark.parametrize("content", [None, b"", b"not PEM", b"\x00\xff"])
def test_a_file_that_is_no_certificate_is_refused_by_name(
    files: Security, setting: str, content: bytes | None
) -> None:
    path = files.ca_file.parent / "wrong"
    if content is not None:
        path.touch(mode=0o600)
        path.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        load_credentials(tls(files, **{setting: str(path)}))
    assert "kafka.security." in caught.value.where
    assert str(path) in f"{caught.value}" or setting == "key_file"
    assert caught.value.hint


def test_a_key_of_another_certificate_is_refused(files: Security, tmp_path: Path) -> None:
    other = make_security(tmp_path / "other")
    shutil.copy(other.key_file, files.key_file)
    with pytest.raises(SettingsError, match="key values mismatch"):
        load_credentials(tls(files))


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"protocol": "SASL_SSL"}, "needs username and password_file"),
        ({"protocol": "SASL_SSL", "username": "a"}, "needs username and password_file"),
        ({"protocol": "SSL", "password_file": "f"}, "sends no password"),
        ({"protocol": "PLAINTEXT", "ca_file": "f"}, "is not encrypted"),
        ({"protocol": "SSL", "cert_file": "f"}, "cert_file and key_file go together"),
        ({"protocol": "TLS"}, "SASL_SSL"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(given: dict[str, str], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        SecuritySettings.model_validate(given)


@pytest.mark.parametrize(
    "servers", ["", "a", "a:", "a:1,", "kafka://a:1", "user:secret@a:1", "a 1:2"]
)
def test_servers_that_are_no_addresses_are_refused(servers: str) -> None:
    with pytest.raises(ValidationError, match="must be host:port"):
        KafkaSettings(bootstrap_servers=servers)
