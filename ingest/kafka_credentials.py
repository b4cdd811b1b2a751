"""What a Kafka client shows a cluster: read from files, and never printed."""

import os
import ssl
import stat
from pathlib import Path
from typing import Any, Final, NamedTuple

from detector.errors import SettingsError
from ingest.kafka_settings import KafkaSettings, SecuritySettings

MAX_PASSWORD_BYTES: Final = 4096
"""A larger file is not a password."""

MAX_BACKOFF_MS: Final = 1_000
"""Longest pause between attempts to reach a broker again. Kafka's clients go up to 30 s, by which
every recovery would be late."""

_OTHERS = stat.S_IRWXO


class Hidden(str):
    """Text that shows stars where structures are printed: the client's log prints its options."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return stars."""
        return "***"


class Credentials(NamedTuple):
    """What Faust, aiokafka and kafka-python need; what the protocol does not use is None."""

    protocol: str
    mechanism: str | None
    username: str | None
    password: Hidden | None
    ssl_context: ssl.SSLContext | None


def load_credentials(settings: SecuritySettings) -> Credentials:
    """Read the files that the settings name.

    Raises SettingsError, with the setting at fault, for a file that is missing, unreadable, not
    what it should be, or (password and private key) readable by others.
    """
    has_password = settings.protocol.startswith("SASL_")
    return Credentials(
        protocol=settings.protocol,
        mechanism=settings.sasl_mechanism if has_password else None,
        username=settings.username if has_password else None,
        password=_password(settings) if has_password else None,
        ssl_context=_ssl_context(settings) if settings.protocol.endswith("SSL") else None,
    )


def client_options(settings: KafkaSettings) -> dict[str, Any]:
    """Return the arguments that producers, consumers and admin clients of kafka-python share."""
    credentials = load_credentials(settings.security)
    return {
        "bootstrap_servers": settings.servers,
        "client_id": "bleedwatch",
        "bootstrap_timeout_ms": settings.connect_timeout_ms,
        "reconnect_backoff_max_ms": MAX_BACKOFF_MS,
        "security_protocol": credentials.protocol,
        "ssl_context": credentials.ssl_context,
        "sasl_mechanism": credentials.mechanism,
        "sasl_plain_username": credentials.username,
        "sasl_plain_password": credentials.password,
    }


def _password(settings: SecuritySettings) -> Hidden:
    # The path is not repeated: someone may have written the password itself there.
    where = "kafka.security.password_file"
    try:
        path = Path(settings.password_file or "")
        _refuse_others(path, where)
        with path.open("rb") as file:
            content = file.read(MAX_PASSWORD_BYTES + 1)
        first = content.decode().splitlines()[0]
    except (OSError, ValueError, IndexError) as error:
        raise SettingsError(
            f"the password cannot be read: {_reason(error)}",
            where=where,
            hint="name a file with the password on its first line",
        ) from None
    if not first or len(content) > MAX_PASSWORD_BYTES:
        raise SettingsError(
            "the file does not hold a password",
            where=where,
            hint="write the password on the first line",
        )
    return Hidden(first)


def _ssl_context(settings: SecuritySettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"the authorities cannot be read: {_reason(error)}",
            where=f"kafka.security.ca_file={settings.ca_file}",
            hint="name a PEM file of certificates",
        ) from None
    if settings.cert_file is not None and settings.key_file is not None:
        _refuse_others(Path(settings.key_file), f"kafka.security.key_file={settings.key_file}")
        try:
            context.load_cert_chain(settings.cert_file, settings.key_file, password=_no_passphrase)
        except (OSError, ValueError) as error:
            raise SettingsError(
                f"the certificate cannot be used: {_reason(error)}",
                where=f"kafka.security.cert_file={settings.cert_file}",
                hint="name PEM files of a certificate and its private key, without a passphrase",
            ) from None
    return context


def _refuse_others(path: Path, where: str) -> None:
    """Refuse a secret that every user may read; a group may, as in Kubernetes mounts."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return  # opening it says what is wrong
    if mode & _OTHERS:
        raise SettingsError(
            f"others may use the file (mode {stat.S_IMODE(mode):04o})",
            where=where,
            hint="chmod o= the file",
        )


def _no_passphrase() -> str:
    """Answer instead of a prompt on the terminal; OpenSSL then refuses the key."""
    return ""


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "not PEM").replace("_", " ").lower()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return "not text" if isinstance(error, UnicodeDecodeError) else "not a valid file"
