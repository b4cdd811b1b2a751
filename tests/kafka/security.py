"""Certificates and a password for a broker that asks for them, made anew for each test run."""

import datetime
import ipaddress
import secrets
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LIFE: Final = datetime.timedelta(days=2)


class Security(NamedTuple):
    """Files in PEM form, and one user. The secrets are worth nothing outside the test run."""

    ca_file: Path
    other_ca_file: Path
    """An authority that has signed nothing here."""
    server_file: Path
    cert_file: Path
    key_file: Path
    user: str
    password: str
    password_file: Path


class _Authority:
    def __init__(self, name: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = _name(name)
        self.cert = (
            _builder(self.name, self.name, self.key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self.key, hashes.SHA256())
        )

    def sign(self, name: str) -> tuple[bytes, bytes]:
        """Return the certificate and the private key of `name` on this machine."""
        key = ec.generate_private_key(ec.SECP256R1())
        here = [
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        ]
        cert = (
            _builder(_name(name), self.name, key)
            .add_extension(x509.SubjectAlternativeName(here), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return cert.public_bytes(serialization.Encoding.PEM), private


def make_security(folder: Path) -> Security:
    """Write an authority, a server, a client and a password into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    authority, other = _Authority("test authority"), _Authority("other authority")
    server, server_key = authority.sign("broker")
    client, client_key = authority.sign("client")
    password = secrets.token_hex(16)
    content = {
        "ca.pem": authority.cert.public_bytes(serialization.Encoding.PEM),
        "other-ca.pem": other.cert.public_bytes(serialization.Encoding.PEM),
        "server.pem": server_key + server,
        "client.pem": client,
        "client.key": client_key,
        "password": password.encode() + b"\n",
    }
    for name, value in content.items():
        (folder / name).touch(mode=0o600)
        (folder / name).write_bytes(value)
    paths = {name: folder / name for name in content}
    return Security(
        ca_file=paths["ca.pem"],
        other_ca_file=paths["other-ca.pem"],
        server_file=paths["server.pem"],
        cert_file=paths["client.pem"],
        key_file=paths["client.key"],
        user="monitor",
        password=password,
        password_file=paths["password"],
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LIFE)
        .not_valid_after(now + LIFE)
    )
