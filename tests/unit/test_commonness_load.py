"""Past traffic that is loaded is common for workers that run and for those that start later."""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from detector.config.root import Settings
from detector.errors import BrokerError
from detector.service import deployment_table
from detector.settings import CommonnessSettings, DetectionSettings
from detector.sketch.token_table import Secret
from detector.streaming.commonness_load import CommonnessLoader, Loaded
from detector.streaming.commonness_show import commonness_rows
from ingest.key_file import load_secret, new_secret
from ingest.memory_io import MemoryBroker
from tests.unit.sequences import prompt, response
from tests.unit.sharing import Worker, settle

HOUR_S = 3_600
HALF_HOUR_S = HOUR_S // 2
RANGES = 2
IDS = list(range(500, 540))
PHRASE_ONLY_ONCE = list(range(900, 940))


def row(tenant: str, at_s: float, ids: list[int]) -> dict[str, object]:
    return {
        "request_id": f"{tenant}-{at_s}", "ts": at_s, "ts_end": at_s + 1, "node": "e",
        "tenant": tenant, "model": "m", "prompt_ids": ids, "response_ids": [1, 2, 3],
    }  # fmt: skip


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    new_secret(tmp_path / "key")
    return Settings(
        key_file=str(tmp_path / "key"),
        detection=DetectionSettings(commonness=CommonnessSettings(memory_bytes=8 << 20)),
    )


@pytest.fixture
def secret(settings: Settings) -> Secret:
    return load_secret(settings.key_file or "")


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.jsonl"
    rows = [
        row("c", 100, IDS), row("d", 200, IDS), row("c", 300, PHRASE_ONLY_ONCE),
        *(row("x", at, [7] * 40) for at in range(HALF_HOUR_S, 2 * HOUR_S, HALF_HOUR_S)),
    ]  # fmt: skip
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in rows))
    return path


def topics(settings: Settings) -> MemoryBroker:
    prefix = settings.kafka.topic_prefix
    return MemoryBroker({f"{prefix}.shingles": RANGES, f"{prefix}.commonness": RANGES})


def load(settings: Settings, secret: Secret, broker: MemoryBroker, path: Path) -> Loaded:
    loader = CommonnessLoader(
        settings, secret, broker.publisher(), ranges=RANGES, writer=b"loader.."
    )
    return loader.load([str(path)])


def worker(
    settings: Settings, secret: Secret, broker: MemoryBroker, *, owns: Iterable[int] = ()
) -> Worker:
    return Worker(
        broker, settings.detection, name=os.urandom(8), ranges=RANGES, keys=secret.keys(),
        prefix=settings.kafka.topic_prefix, owns=owns,
    )  # fmt: skip


def test_loaded_traffic_is_common_and_ends_the_learning(
    settings: Settings, secret: Secret, history: Path
) -> None:
    broker = topics(settings)
    owner = worker(settings, secret, broker, owns=range(RANGES))
    loaded = load(settings, secret, broker, history)
    assert (loaded.requests, loaded.shingles) == (6, 2 * 31 + 31)
    settle(owner)
    later = worker(settings, secret, broker)
    hashes = deployment_table(settings).hash(IDS)
    at_s = 2 * HOUR_S + 100
    for one in (owner, later):
        one.observe(prompt("a", "a1", at_s, hashes))
        assert not one.observe(response("b", "b1", at_s + 9, hashes))
        assert not one.detectors[0].learning


def test_loading_twice_changes_nothing(settings: Settings, secret: Secret, history: Path) -> None:
    broker = topics(settings)
    owner = worker(settings, secret, broker, owns=range(RANGES))
    for _ in range(2):
        load(settings, secret, broker, history)
        settle(owner)
    heard = worker(settings, secret, broker).exchanged.heard
    assert heard == 2 * 31


def test_what_is_shown_counts_what_was_told(
    settings: Settings, secret: Secret, history: Path
) -> None:
    broker = topics(settings)
    owner = worker(settings, secret, broker, owns=range(RANGES))
    load(settings, secret, broker, history)
    settle(owner)
    rows = {
        str(one["what"]): one["count"] for one in commonness_rows(settings, secret, broker.reader())
    }
    assert rows["told as shared by several tenants"] == 2 * 31
    assert rows["told as tainted"] == 0
    assert not [what for what in rows if what.startswith("could not be read")]
    other = Secret(bytes(range(32)))
    refused = commonness_rows(settings, other, broker.reader())[-1]
    assert refused["what"] == "not used: unknown_key"


def test_a_broker_without_the_topics_is_told(settings: Settings, secret: Secret) -> None:
    with pytest.raises(BrokerError, match="no such topic"):
        commonness_rows(settings, secret, MemoryBroker({"t.other": 1}).reader())
