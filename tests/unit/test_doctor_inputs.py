"""The doctor looks at pattern files and at the endpoints of KV events."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from detector.config.load import load_settings
from detector.doctor.facts import Facts
from detector.doctor.kv_events import kv_events
from detector.doctor.patterns import patterns
from detector.doctor.verdicts import Level
from tests.unit.kv_publisher import Publisher

GOOD = """
version: 1
engine: mine
patterns:
  - name: mine-lost
    kind: transfer_failed
    start: "Lost blocks of "
"""


def facts(**given: Any) -> Facts:
    flags = [f"{name.replace('__', '.')}={json.dumps(value)}" for name, value in given.items()]
    return Facts(load_settings(environment={}, assignments=flags).settings)


def source(endpoint: str, **more: str) -> dict[str, str]:
    return {"endpoint": endpoint, "engine": "engine-0", **more}


def test_without_files_and_names_there_is_nothing_to_say() -> None:
    assert list(patterns(facts())) == []
    assert list(kv_events(facts())) == []


def test_a_pattern_file_is_counted_or_its_fault_is_told_with_its_line(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(GOOD)
    bad.write_text(GOOD.replace("transfer_failed", "no_such_kind"))
    first, second, third = patterns(facts(signals__files=[str(good), str(bad), str(tmp_path)]))
    assert (first.level, first.found) == (Level.OK, "1 patterns for mine")
    assert second.level is third.level is Level.ERROR
    assert f"{bad}:6" in second.found


def test_a_name_that_is_off_and_of_no_pattern_is_told(tmp_path: Path) -> None:
    good = tmp_path / "good.yaml"
    good.write_text(GOOD)
    off = ["mine-lost", "http-400"]
    (only,) = patterns(facts(signals__files=[str(good)], signals__off=off))
    assert only.level is Level.OK
    (unknown,) = patterns(facts(signals__off=off))
    assert (unknown.level, unknown.subject) == (Level.ERROR, "signals.off")
    assert "mine-lost" in unknown.found


def test_a_publisher_answers_at_both_endpoints() -> None:
    with Publisher() as publisher:
        given = source(publisher.endpoint, replay_endpoint=publisher.replay_endpoint)
        told = list(kv_events(facts(kv_events__sources=[given])))
    assert [one.level for one in told] == [Level.OK, Level.OK]
    assert publisher.replay_endpoint in told[1].found


def test_a_publisher_without_a_replay_endpoint_gets_a_next_step() -> None:
    with Publisher() as publisher:
        told = list(kv_events(facts(kv_events__sources=[source(publisher.endpoint)])))
    assert [one.level for one in told] == [Level.OK, Level.OK]
    assert "replay_endpoint" in told[1].next_step


@pytest.fixture
def web_server() -> Iterator[int]:
    """Give the port of something that answers, and not in ZeroMQ."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            client, _ = listening.accept()
            with client:
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = Thread(target=answer)
        thread.start()
        yield int(listening.getsockname()[1])
        thread.join()


def test_another_server_at_the_endpoint_is_no_publisher(web_server: int) -> None:
    given = source(f"tcp://127.0.0.1:{web_server}")
    (told, _) = kv_events(facts(kv_events__sources=[given]))
    assert (told.level, "does not speak ZeroMQ" in told.found) == (Level.ERROR, True)


@pytest.mark.parametrize(
    "endpoint", ["tcp://127.0.0.1:1", "tcp://127.0.0.1:none", "ipc:///nowhere/at-all"]
)
def test_an_endpoint_where_nobody_is_is_an_error_with_the_flag(endpoint: str) -> None:
    (told, _) = kv_events(facts(kv_events__sources=[source(endpoint)]))
    assert told.level is Level.ERROR
    assert "--kv-events-config" in told.next_step


def test_an_endpoint_that_is_listened_on_is_not_taken_from_the_sidecar() -> None:
    (told, _) = kv_events(facts(kv_events__sources=[source("tcp://*:5557")]))
    assert told.level is Level.UNKNOWN
