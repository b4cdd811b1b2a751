"""A sidecar beside a genuine vLLM: memory that is kept back, requests that end badly, ids."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from detector.sketch.token_table import TokenTable
from ingest.key_file import load_secret
from ingest.opening import open_records
from ingest.schema_records import EngineEvent, EventKind, Quality, RuntimeSample
from tests.engine.server import BLOCK_TOKENS, BLOCKS, Engine, make_model, served
from tests.engine.traffic import Asked, Clients
from tests.sidecar.process import SidecarProcess, Site
from tests.streams.process import until

KEEPS_EVERY = 5
EACH = 12
"""Requests of each kind: enough for every tenant to have some."""

EACH_BAD = 3
"""Requests of each kind that does not end well."""

IDLE_S = 120.0
"""An engine is idle at once; a busy machine may take its time to show it."""

TENANCY = {"rules": [{"kind": "field", "name": "user"}]}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model"))


def beside(engine: Engine, site: Site, folder: Path) -> SidecarProcess:
    """Start a sidecar that follows the engine's log and asks the engine."""
    config: dict[str, Any] = json.loads(site.config.read_text())
    target = {"url": engine.url, "engine": "engine-0"}
    config["scrape"] = {"targets": [target], "interval_ms": 500}
    config["tenancy"] = TENANCY
    site.config.write_text(json.dumps(config))
    sidecar = SidecarProcess(site, folder / "stderr")
    sidecar.await_start()
    return sidecar


def samples(site: Site) -> list[RuntimeSample]:
    return [
        one
        for message in site.messages(site.topics.runtime)
        for one in open_records(RuntimeSample, message).records
    ]


def events(site: Site) -> list[EngineEvent]:
    return [
        one
        for message in site.messages(site.topics.engine_events)
        for one in open_records(EngineEvent, message).records
    ]


def idle(site: Site) -> RuntimeSample | None:
    """Return the newest sample if it says surely what is not released."""
    told = sorted(samples(site), key=lambda one: one.sampled_at_ms)
    return told[-1] if told and told[-1].unreleased_quality is Quality.EXACT else None


def asked(engine: Engine, seed: int) -> Iterator[Asked]:
    with engine.client() as client:
        clients = Clients(client, seed=seed)
        for _ in range(EACH):
            yield clients.chat()
            yield clients.complete()
        for ask in (clients.over_long, clients.greedy, clients.leave):
            for _ in range(EACH_BAD):
                yield ask()


def kept_tokens(engine: Engine) -> int:
    kept = [json.loads(line)["blocks"] for line in engine.kept.read_text().splitlines()]
    return len({block for blocks in kept for block in blocks}) * BLOCK_TOKENS


class Seen(NamedTuple):
    """What clients of an engine asked, and what a sidecar beside it made of that."""

    site: Site
    made: list[Asked]
    idle: RuntimeSample


@pytest.fixture(scope="module")
def sound(model: Path, kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Return what is seen of an engine without a fault, once the sidecar has sent everything."""
    folder = tmp_path_factory.mktemp("sound")
    site = Site(folder, kafka, f"test-{uuid.uuid4().hex[:12]}", log_format="vllm")
    with served(model, site.log) as engine:
        sidecar = beside(engine, site, folder)
        with sidecar.killed_at_last():
            made = list(asked(engine, seed=3))
            until(lambda: idle(site) is not None, IDLE_S)
            assert sidecar.stop() == 0
    last = idle(site)
    assert last is not None
    return Seen(site, made, last)


def test_an_idle_engine_holds_nothing(sound: Seen) -> None:
    assert sound.idle.unreleased_tokens == 0
    assert sound.idle.pool_tokens == (BLOCKS - 1) * BLOCK_TOKENS
    assert sound.idle.engine_version == "0.32.0"


def test_requests_that_end_badly_are_events(sound: Seen) -> None:
    assert [one.status for one in sound.made[-9:-3]] == [400] * 6
    told = events(sound.site)
    long = [one for one in told if one.detail in ("over_long", "over_long_at_least")]
    assert len(long) == EACH_BAD
    assert all(one.kind is EventKind.REJECTED and one.limit_tokens == 512 for one in long)
    assert all((one.prompt_tokens or 0) > 512 for one in long)
    assert sum(one.detail == "max_tokens" for one in told) == EACH_BAD
    aborted = {one.request_id for one in told if one.kind is EventKind.ABORTED}
    assert {one.request_id for one in sound.made[-3:]} <= aborted


def test_prompts_reach_the_broker_with_the_ids_that_their_clients_know(sound: Seen) -> None:
    keys = load_secret(sound.site.key).keys()
    table = TokenTable(keys.hash_key, key_id=keys.key_id)
    sent = {
        (one.tenant, one.request_id): one.token_hashes
        for one in sound.site.sequences()
        if one.kind == "prompt"
    }
    known = [one for one in sound.made if one.prompt_ids]
    assert len(known) == 2 * EACH
    for one in known:
        hashes = table.hash(one.prompt_ids).astype("<u4").tobytes()
        assert sent[one.tenant, one.request_id] == hashes, one.request_id


def test_blocks_that_are_kept_back_are_told_to_the_token(
    model: Path, kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    site = Site(tmp_path, kafka, topic_prefix, log_format="vllm")
    with (
        served(model, site.log, keeps_every=KEEPS_EVERY) as engine,
        beside(engine, site, tmp_path).killed_at_last(),
    ):
        made = list(asked(engine, seed=7))
        assert sum(bool(one.response_ids) for one in made) == 2 * EACH
        until(lambda: idle(site) is not None, IDLE_S)
        last = idle(site)
        expected = kept_tokens(engine)
    assert last is not None
    assert expected > 0
    assert last.unreleased_tokens == expected
