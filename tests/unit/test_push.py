"""The push port: what it takes arrives hashed, and what it refuses it explains without echoing."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from detector.errors import SettingsError
from detector.sketch.token_table import checked_ids
from ingest.push.settings import PushSettings
from ingest.push.token import read_token
from ingest.schema_records import RequestRow, RuntimeSample, SequenceRecord
from tests.unit.pushes import KEYS, NOW_MS, TABLE, Port, opened, request

MSGPACK = "application/msgpack"


@pytest.fixture(scope="module")
def shared() -> Iterator[Port]:
    with opened(max_body_bytes=2**20, reading_bytes=2**20) as port:
        yield port


@pytest.fixture
def port(shared: Port) -> Port:
    """A port with nothing in it."""
    shared.holds = False
    shared.intake.feed(0.0)
    return shared


def sequences(port: Port) -> list[SequenceRecord]:
    found = port.intake.feed(0.0)
    assert all(isinstance(one, SequenceRecord) for one in found)
    return [one for one in found if isinstance(one, SequenceRecord)]


def test_a_request_becomes_two_hashed_sequences(port: Port) -> None:
    reply = port.push(request())
    assert (reply.status, reply.json) == (202, {"accepted": 1, "unmapped": 0, "refused": {}})
    prompt, response = sequences(port)
    assert (prompt.tenant, prompt.request_id, prompt.kind) == ("acme", "r-1", "prompt")
    assert (response.kind, response.ended_at_ms) == ("response", NOW_MS + 900)
    assert prompt.key_id == KEYS.key_id
    assert prompt.kv_pool == "engine-0"
    ids = checked_ids(list(range(500, 520)))
    assert response.token_hashes == TABLE.hash(ids).astype("<u4").tobytes()


def test_messagepack_says_the_same(port: Port) -> None:
    port.push(request(), request(request_id="r-2", session="s", status=200))
    by_json = sequences(port)
    body = {"requests": [request(), request(request_id="r-2", session="s", status=200)]}
    reply = port.send(msgspec.msgpack.encode(body), content_type=MSGPACK)
    assert reply.status == 202
    by_msgpack = sequences(port)
    assert [msgspec.to_builtins(one) for one in by_msgpack] == [
        msgspec.to_builtins(one) for one in by_json
    ]


def test_the_tenant_may_stand_in_a_header_that_the_gateway_saw(port: Port) -> None:
    seen = request(tenant=None, identity={"header:X-Tenant-Id": "globex"})
    del seen["tenant"]
    port.push(seen)
    assert {one.tenant for one in sequences(port)} == {"globex"}


def test_a_request_of_nobody_is_counted(port: Port) -> None:
    nobody = request()
    del nobody["tenant"]
    reply = port.push(nobody, request())
    assert reply.json == {"accepted": 1, "unmapped": 1, "refused": {}}


def test_a_request_without_ids_is_a_row(port: Port) -> None:
    bare = request()
    del bare["prompt_ids"], bare["response_ids"]
    assert port.push(bare).status == 202
    (row,) = port.intake.feed(0.0)
    assert isinstance(row, RequestRow)
    assert row.flags == ("ids_not_logged",)


def test_samples_reach_the_sidecar_and_the_back_pressure_answer(port: Port) -> None:
    sample = {
        "engine": "e-7",
        "kv_pool": "e-7",
        "engine_kind": "vllm",
        "sampled_at_ms": NOW_MS,
        "pool_usage_ratio": 0.97,
    }
    assert port.push(sample, path="/v1/runtime", name="samples").status == 202
    (taken,) = port.intake.feed(0.0)
    assert isinstance(taken, RuntimeSample)
    stop = port.get("/v1/backpressure?engine=e-7")
    assert stop.status == 503
    assert stop.headers["retry-after"] == "1"
    assert stop.json["admit"] is False
    assert stop.json["pools"][0]["pool_usage_ratio"] == 0.97
    assert port.get("/v1/backpressure?engine=other").status == 200
    sample["pool_usage_ratio"] = 0.4
    port.push(sample, path="/v1/runtime", name="samples")
    assert port.get("/v1/backpressure").status == 200


def test_probes_say_why_not(port: Port) -> None:
    assert port.get("/livez").json == {"ok": True, "reasons": []}
    assert port.get("/readyz").status == 200
    port.not_ready.append("messages are refused")
    try:
        reply = port.get("/readyz")
    finally:
        port.not_ready.clear()
    assert (reply.status, reply.json["reasons"]) == (503, ["messages are refused"])


def test_a_full_sidecar_asks_to_come_back_later() -> None:
    with opened(waiting_bytes=10_000) as port:
        port.holds = True
        taken = 0
        while (reply := port.push(request(request_id=f"r-{taken}"))).status == 202:
            taken += 1
        assert reply.status == 503
        assert reply.headers["retry-after"] == "1"
        assert reply.headers["content-type"] == "application/problem+json"
        assert taken == 3  # of 4,296 bytes each, the last one crosses the line
        assert port.intake.feed(0.0) == []
        port.holds = False
        assert len(port.intake.feed(0.0)) == 2 * taken
        assert port.push(request()).status == 202


def test_pushes_need_the_token_if_there_is_one() -> None:
    with opened(token=b"0123456789abcdef") as port:
        body = json.dumps({"requests": [request()]}).encode()
        assert port.send(body).status == 401
        assert port.send(body, authorization="Bearer 0123456789abcdeg").status == 401
        assert port.send(body, authorization="Basic 0123456789abcdef").status == 401
        assert port.send(body, authorization="Bearer 0123456789abcdef").status == 202
        assert port.get("/v1/backpressure").status == 200


def test_a_short_token_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    assert read_token(None) is None
    path.write_text("short\n")
    with pytest.raises(SettingsError, match="short one"):
        read_token(str(path))
    path.write_text("0123456789abcdef\nmore\n")
    assert read_token(str(path)) == b"0123456789abcdef"


def test_beyond_loopback_a_token_is_required() -> None:
    with pytest.raises(ValueError, match="token_file must be set"):
        PushSettings(host="0.0.0.0", port=9465)
    PushSettings(host="0.0.0.0", port=9465, token_file="/token")
    for host in ("127.0.0.1", "127.3.2.1", "::1", "localhost"):
        PushSettings(host=host, port=9465)


def test_a_port_that_is_taken_is_said_to_be(port: Port) -> None:
    with pytest.raises(SettingsError, match="cannot listen"), opened(port=port.server.port):
        pass


def test_times_are_as_they_were_pushed(port: Port) -> None:
    now = datetime.now(UTC)
    at_ms = round(now.timestamp() * 1000)
    port.push(request(started_at_ms=at_ms, ended_at_ms=at_ms + 5))
    assert [one.started_at_ms for one in sequences(port)] == [at_ms, at_ms]
    assert time.time() * 1000 - at_ms < 60_000
