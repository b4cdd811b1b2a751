"""A server that says bytes as told, whatever HTTP thinks of them, and remembers what it heard."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

HEAD_END = b"\r\n\r\n"

Talk = Callable[[socket.socket, bytes], None]
"""Says what is to be said on a connection, given the head that came and what came with it."""


@dataclass
class Scripted:
    """The running server: `heard` is the first request of each connection."""

    url: str
    heard: list[bytes] = field(default_factory=list)


@contextmanager
def scripted(talk: Talk) -> Iterator[Scripted]:
    """Serve until the block ends, each connection in a thread of its own."""
    listening = socket.create_server(("127.0.0.1", 0))
    made = Scripted(f"http://127.0.0.1:{listening.getsockname()[1]}")

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            made.heard.append(head := _heard(connection))
            talk(connection, head)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def answer(body: bytes, *headers: str, status: str = "200 OK") -> Talk:
    """Return what answers with a body of known length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]

    def talk(connection: socket.socket, _: bytes) -> None:
        connection.sendall("\r\n".join(lines).encode() + body)

    return talk


def stream(*events: bytes, ends: bool = True) -> Talk:
    """Return what answers with a stream, an event in a chunk; without an end if it is to break."""

    def talk(connection: socket.socket, _: bytes) -> None:
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        for event in events:
            connection.sendall(chunk(event))
        if ends:
            connection.sendall(b"0\r\n\r\n")

    return talk


def chunk(data: bytes) -> bytes:
    """Return bytes as one chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def _heard(connection: socket.socket) -> bytes:
    """Read a head, and a body of stated length; closing with unread bytes would lose the answer."""
    heard = bytearray()
    missing = 1
    while missing > 0:
        piece = connection.recv(65_536)
        if not piece:
            break
        heard += piece
        head, end, body = bytes(heard).partition(HEAD_END)
        stated = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        missing = int(stated[1]) - len(body) if end and stated else not end
    return bytes(heard)
