"""The --listen flag: an address as settings, what it excludes, and the port itself."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from detector.cli.terminal import note
from detector.errors import UsageError

if TYPE_CHECKING:
    from detector.config.root import Settings
    from detector.streaming.listening import Listening
    from exporters.joined import Joined


def listen_settings(listen: str | None) -> list[tuple[str, str, str]]:
    """Return the settings that [HOST:]PORT stands for, as `load_settings` takes them."""
    if listen is None:
        return []
    host, _, port = listen.rpartition(":")
    if not port.isdecimal():
        raise UsageError("--listen needs [HOST:]PORT", hint="for example --listen 127.0.0.1:9466")
    address = [("push.port", port), *([("push.host", host.strip("[]"))] if host else [])]
    return [("--listen", name, value) for name, value in address]


def check_source(files: Sequence[str] | None, listen: str | None) -> None:
    """Raise UsageError unless there are either files or an address to listen on."""
    if listen is None and not files:
        raise UsageError("there is nothing to read", hint="name logs, - for stdin, or --listen")
    if listen is not None and files:
        raise UsageError(
            "--listen takes no FILES", hint="let a sidecar follow them: http.url names this process"
        )


@contextmanager
def heard(
    settings: "Settings", listen: str | None, metrics: "Joined"
) -> Iterator["Listening | None"]:
    """Listen until the block ends, and say on which port; None without an address."""
    if listen is None:
        yield None
        return
    from detector.streaming.listening import listening

    with listening(settings, metrics) as made:
        note(f"takes what sidecars send and gateways push on port {made.server.port}")
        yield made
