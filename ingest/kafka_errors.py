"""What goes wrong with a cluster, told so that one knows what to do.

The client says only "unable to bootstrap" when it cannot connect; why, it says in its log. So
`connecting` listens to that log, and the most telling reason goes into the error.
"""

import contextlib
import logging
import re
import threading
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kafka.errors import KafkaError
from kafka.net.compat import KafkaNetClient

from detector.errors import BrokerError
from ingest.client_logs import hold_client_logs
from ingest.kafka_credentials import client_options
from ingest.kafka_settings import KafkaSettings


class _Cause(NamedTuple):
    """A pattern in the name or the text of an error, and what it means."""

    pattern: str
    what: str
    hint: str


_CONNECTING: Final = (
    _Cause(
        r"SaslAuthenticationFailed",
        "the cluster refuses the user name or the password",
        "check kafka.security.username, password_file and sasl_mechanism",
    ),
    _Cause(
        r"SaslMechanism",
        "the cluster does not offer the SASL mechanism",
        "set kafka.security.sasl_mechanism to one that it offers",
    ),
    _Cause(
        r"Hostname mismatch|IP address mismatch",
        "the cluster's certificate is for another host name",
        "name the brokers in kafka.bootstrap_servers as their certificate does",
    ),
    _Cause(
        r"CERTIFICATE_VERIFY_FAILED",
        "the cluster's certificate is not signed by an authority that we trust",
        "name its authority in kafka.security.ca_file",
    ),
    _Cause(
        r"ALERT_(?:BAD_CERTIFICATE|CERTIFICATE_REQUIRED|UNKNOWN_CA|CERTIFICATE_\w+|HANDSHAKE)",
        "the cluster does not accept our client certificate, or misses one",
        "check kafka.security.cert_file and key_file",
    ),
    _Cause(
        r"DNS",
        "the host name cannot be resolved",
        "check kafka.bootstrap_servers: host:port, separated by commas",
    ),
    _Cause(
        r"ECONNREFUSED|EHOSTUNREACH|ENETUNREACH",
        "nothing listens there",
        "start the broker or correct kafka.bootstrap_servers",
    ),
    _Cause(
        r"InvalidReceive|WRONG_VERSION|EOF_WHILE_READING|socket disconnected",
        "the listener does not seem to speak what kafka.security.protocol says",
        "ask which protocol that port has: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
    ),
)
"""The most telling first."""

_LOGIN: Final = _Cause(
    r"socket disconnected",
    "the cluster ends the connection while we log in",
    "check kafka.security.username, password_file and sasl_mechanism",
)
"""The client often sees the end of a connection before the refusal that was sent ahead of it."""

_AWAY: Final = _Cause(
    r"Timeout|Timed|Connection|NodeNotReady|NotLeader|LeaderNotAvailable|BrokerNotAvailable",
    "the cluster did not answer in time",
    "check that its brokers run; kafka.delivery_timeout_ms and connect_timeout_ms say how long we "
    "wait",
)

_WORKING: Final = (
    _Cause(
        r"TooLarge",
        "the message is larger than the cluster or kafka.max_message_bytes allows",
        "raise the smaller; bleedwatch topics check tells what the topics allow",
    ),
    _Cause(
        r"UnknownTopic|Unrecognized partition|partition must be|not found in ClusterMetadata",
        "there is no such topic or partition",
        "bleedwatch topics create makes what is missing",
    ),
    _Cause(
        r"Failed to update metadata",
        "there is no such topic, or the cluster did not answer in time",
        "bleedwatch topics check tells which",
    ),
    _Cause(
        r"Authorization",
        "the user may not do this",
        "give it the rights that docs/streaming.md lists",
    ),
    _Cause(
        r"InvalidTimestamp",
        "the cluster refuses the time of sending: our clock is more than an hour ahead of its",
        "set the clock of this machine",
    ),
    _Cause(
        r"NotEnoughReplicas",
        "too few replicas are in sync",
        "bring the brokers back, or lower min.insync.replicas",
    ),
    _Cause(
        r"KafkaStorage",
        "the broker cannot write to its disk",
        "look at its disk space and its log",
    ),
    _Cause(r"already closed", "the publisher is closed", "open another"),
    _Cause(r"Need at least one", "a message has neither key nor value", "give it one of them"),
    _AWAY,
)


def broker_error(error: BaseException, *, where: str) -> BrokerError:
    """Return the error of ours for one of the client's. It holds nothing of a record."""
    cause = _first(_WORKING, [_said(error)])
    if cause is None:
        kind = type(error).__name__
        return BrokerError(
            f"the cluster refuses: {kind}", where=where, hint="see the log of the broker"
        )
    return BrokerError(cause.what, where=where, hint=cause.hint)


@contextlib.contextmanager
def connecting(settings: KafkaSettings) -> Iterator[dict[str, Any]]:
    """Give the options of a client that is made in the `with` block.

    A failed attempt leaves no connection behind and becomes a BrokerError that says why it failed.
    Raises SettingsError for a file of the settings that cannot be used.
    """
    made: list[KafkaNetClient] = []

    def remembered(**options: object) -> KafkaNetClient:
        made.append(KafkaNetClient(**options))
        return made[-1]

    listener = _Listener()
    log = logging.getLogger("kafka")
    hold_client_logs()
    log.addHandler(listener)
    try:
        yield {**client_options(settings), "kafka_client": remembered}
    except BaseException as error:
        for client in made:
            client.close()
        if not isinstance(error, KafkaError):
            raise
        raise _not_connected(settings, [*listener.heard, _said(error)]) from None
    finally:
        log.removeHandler(listener)


def _not_connected(settings: KafkaSettings, said: list[str]) -> BrokerError:
    has_login = settings.security.protocol.startswith("SASL_")
    causes = (*_CONNECTING[:-1], _LOGIN, *_CONNECTING[-1:]) if has_login else _CONNECTING
    cause = _first(causes, said)
    seconds = settings.connect_timeout_ms / 1000
    return BrokerError(
        cause.what if cause else f"no broker answered within {seconds:g} s",
        where=", ".join(settings.servers),
        hint=cause.hint if cause else "check kafka.bootstrap_servers and the network",
    )


class _Listener(logging.Handler):
    """Remembers the errors that a new client logs; older ones work in threads that were there."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: set[str] = set()
        self._older = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep name and text of the errors in a record; the same ones repeat."""
        if record.thread in self._older:
            return
        values = record.args if isinstance(record.args, tuple) else ()
        said = [*values, record.exc_info[1] if record.exc_info else None]
        self.heard |= {_said(value) for value in said if isinstance(value, BaseException)}


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _first(causes: tuple[_Cause, ...], said: list[str]) -> _Cause | None:
    matching = (cause for cause in causes if any(re.search(cause.pattern, text) for text in said))
    return next(matching, None)
