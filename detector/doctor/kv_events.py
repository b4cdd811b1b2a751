"""Check of the endpoints at which engines publish KV events: does a publisher answer there."""

import socket
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from detector.doctor.facts import Facts
from detector.doctor.verdicts import Level, Verdict
from ingest.kv_events.settings import KvEventSource

CONNECT_S: Final = 2.0
"""How long an endpoint has to answer: it is in the same pod."""

GREETING_BYTES: Final = 10
"""The signature with which every peer of ZeroMQ begins, unasked: ff, eight bytes, 7f."""

_FLAG = "start the engine with --kv-events-config; bleedwatch doctor --flags lists it"


def kv_events(facts: Facts) -> Iterator[Verdict]:
    """At every endpoint somebody speaks ZeroMQ, and what was missed can be asked for."""
    sources = facts.settings.kv_events.sources
    if sources and find_spec("zmq") is None:
        yield Verdict(
            Level.ERROR,
            "kv_events.sources",
            "ZeroMQ is not installed",
            "pip install 'bleedwatch[kv-events]'",
        )
    for source in sources:
        yield _answers(source, source.endpoint)
        if source.replay_endpoint is not None:
            yield _answers(source, source.replay_endpoint)
        else:
            found = f"{source.endpoint} has no replay endpoint: what is missed is lost"
            hint = "give replay_endpoint here, and in the engine's --kv-events-config"
            yield Verdict(Level.OK, source.engine, found, hint)


def _answers(source: KvEventSource, endpoint: str) -> Verdict:
    if "*" in endpoint:
        found = f"{endpoint}: the sidecar listens there, engines connect: cannot be looked at"
        return Verdict(
            Level.UNKNOWN, source.engine, found, "see bleedwatch_kv_events_messages_total"
        )
    try:
        greeting = _greeting(endpoint)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        found = f"{endpoint} cannot be reached: {reason.lower()}"
        return Verdict(Level.ERROR, source.engine, found, _FLAG)
    if not (greeting.startswith(b"\xff") and greeting.endswith(b"\x7f")):
        found = f"{endpoint} does not speak ZeroMQ"
        return Verdict(Level.ERROR, source.engine, found, "give the port of the KV events")
    return Verdict(Level.OK, source.engine, f"{endpoint} answers")


def _greeting(endpoint: str) -> bytes:
    """Return the first bytes that a peer says; raises OSError, or ValueError for no address."""
    scheme, _, place = endpoint.partition("://")
    with closing(_connected(scheme, place)) as peer:
        peer.settimeout(CONNECT_S)
        said = b""
        while len(said) < GREETING_BYTES and (more := peer.recv(GREETING_BYTES - len(said))):
            said += more
        return said


def _connected(scheme: str, place: str) -> socket.socket:
    if scheme == "tcp":
        host, _, port = place.rpartition(":")
        return socket.create_connection((host.strip("[]"), int(port)), CONNECT_S)
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        peer.connect(str(Path(place)))
    except OSError:
        peer.close()
        raise
    return peer
