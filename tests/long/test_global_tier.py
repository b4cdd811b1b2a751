"""The recorded hour with all pools compared: no clean finding more, and copies across pools found.

`python -m tests.long.test_global_tier DIR` prints the table of docs/streaming.md.
"""

import sys
from collections import Counter
from pathlib import Path

import pytest

from detector.batches import Batches
from detector.config.load import load_settings
from detector.config.root import Settings
from detector.evaluate import ARRIVAL_HOLD_MS
from detector.finding import Finding
from detector.index.memory import Memory
from detector.index.window import Sequencer
from detector.model import Kind, Sequence
from detector.pipeline import Detector
from detector.reading import Reading
from detector.service import deployment_secret, learn, surest
from detector.sketch.tag_keys import TagKeys
from detector.sketch.token_table import TokenTable
from detector.streaming.compose import new_handler
from detector.streaming.global_tier import GlobalTier
from detector.streaming.local import EventClock, LocalStream
from ingest.sealing import KeyRing
from ingest.topics import topic_names
from tests.reference.edited import EDITS, Edit, Truth, copied

COPIES, PARTITIONS = 100, 8

WHOLE: Edit = lambda tokens, _draw, _vocabulary: tokens  # noqa: E731

CHANGES: dict[str, Edit] = {
    "none": WHOLE,
    **{name: EDITS[name] for name in ("5 % of tokens", "10 % of tokens", "every 8th token")},
}

FLOORS = {"none": 0.9, "5 % of tokens": 0.9}


class World:
    """The clean traffic of a data set with its history."""

    def __init__(self, folder: Path) -> None:
        chosen = ["stream.global_tier=true", f"kafka.partitions={PARTITIONS}"]
        self.settings: Settings = load_settings(assignments=chosen, environment={}).settings
        self.secret = deployment_secret(self.settings)
        keys = self.secret.keys()
        self.table = TokenTable(keys.hash_key, key_id=keys.key_id)
        self.clean = self._read(folder / "requests.jsonl.zst")
        self.history = self._read(folder / "history.jsonl.zst")

    def _read(self, path: Path) -> list[Sequence]:
        return list(Reading(self.settings, self.table).sequences([str(path)], log_format="jsonl"))

    def findings(self, traffic: list[Sequence]) -> list[Finding]:
        """Return the last version of each finding in traffic that arrives as it ends."""
        stream = self._stream()
        arriving = sorted(traffic, key=lambda one: (one.ended_at_ms, one.kind is Kind.RESPONSE))
        sequencer = Sequencer(hold_ms=ARRIVAL_HOLD_MS)
        found: list[Finding] = []
        for arrived in arriving:
            for ready in sequencer.push(arrived):
                found += stream.send(ready)
        for ready in sequencer.drain():
            found += stream.send(ready)
        found += stream.finish()
        return surest(found)

    def _stream(self) -> LocalStream:
        settings, detection = self.settings, self.settings.detection
        ring, memory, events = KeyRing.of(self.secret), Memory(detection.commonness), EventClock()
        learn(
            Detector(detection, memory=memory), self.history, window=detection.window,
            batches=Batches(detection),
        )  # fmt: skip
        tags = TagKeys(self.secret.keys().tag_key)
        tier = GlobalTier(settings, tags, ring=lambda: ring, ranges=PARTITIONS)
        handler = new_handler(
            settings, ring=lambda: ring, table=self.table, memory=memory, sketches=tier.sketches,
            clock=events,
        )  # fmt: skip
        return LocalStream(
            handler, topics=topic_names(settings.kafka.topic_prefix), ring=ring,
            partitions=PARTITIONS, settings=settings.stream, packing=settings.packing,
            events=events, clock=events, tier=tier,
        )  # fmt: skip

    def planted(self, name: str) -> tuple[list[Finding], Truth]:
        """Return the findings with copies across pools edited in that way, and the copies."""
        traffic, truth = copied(self.clean, CHANGES[name], count=COPIES, seed=1, across=True)
        assert len(truth) == COPIES
        return self.findings(traffic), truth


def hits(findings: list[Finding], truth: Truth) -> list[Finding]:
    """Return the findings that name a planted copy with its source."""
    wanted = {(sink, source) for sink, source in truth.items()}
    return [
        one
        for one in findings
        if any(
            ((one.sink.tenant, one.sink.request_id), (source.tenant, source.request_id)) in wanted
            for source in (one.source, *one.other_sources)
        )
    ]


def is_across(finding: Finding) -> bool:
    """True for what only sketches have shown: the sentence names both pools."""
    return "sketches put" in finding.explanation


@pytest.fixture(scope="module")
def world(recorded_traffic: Path) -> World:
    return World(recorded_traffic / "dev")


def test_clean_traffic_has_no_finding_across_pools(world: World) -> None:
    found = world.findings(world.clean)
    assert len({one.kv_pool for one in world.clean}) > 1
    assert not [one for one in found if is_across(one)]
    assert len(found) <= 25


@pytest.mark.parametrize("name", FLOORS)
def test_a_response_in_another_pool_is_found_with_its_source(world: World, name: str) -> None:
    found, truth = world.planted(name)
    told = [one for one in hits(found, truth) if is_across(one)]
    assert len(told) >= FLOORS[name] * COPIES
    assert not [one for one in told if one.confidence == "high"]


def main() -> None:
    world = World(Path(sys.argv[1]))
    pools = {one.kv_pool for one in world.clean}
    clean = world.findings(world.clean)
    print(f"{len(pools)} pools; clean: {Counter(map(is_across, clean))} across pools")
    print("| edit | found of 100 | other findings across pools |\n|---|---|---|")
    for name in CHANGES:
        found, truth = world.planted(name)
        right = {one.id for one in hits(found, truth) if is_across(one)}
        others = sum(is_across(one) for one in found) - len(right)
        print(f"| {name} | {len(right)} | {others} |", flush=True)


if __name__ == "__main__":
    main()
