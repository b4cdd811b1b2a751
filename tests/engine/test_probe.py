"""A probe against a genuine vLLM: passed as it is, failed where memory or salts are not kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from detector.check.verdict import Verdict
from detector.probe.plan import NAMES
from detector.probe.probing import Given, Probed, probe
from tests.engine.server import BLOCK_TOKENS, BLOCKS, Engine, make_model, served

SETTLE_S: Final = 20.0
"""An engine is idle at once; a busy machine may take its time to show it."""

RELEASES: Final = ("release-after-abort", "release-after-time-out")
"""What is asked of an engine that keeps every block: with more it would be full before the end."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model"))


def probed(engine: Engine, only: Sequence[str] = NAMES) -> Probed:
    skipped = tuple(name for name in NAMES if name not in only)
    return probe(Given(url=engine.url, settle_s=SETTLE_S, skipped=skipped))


def told(found: Probed) -> list[str]:
    """Return what was not passed, in words, for the message of a test."""
    return [
        f"{one.said.verdict.value} {one.check}: {one.said.found}"
        for one in found.results
        if one.said.verdict is not Verdict.PASS
    ]


def test_an_engine_as_it_is_passes(model: Path, tmp_path: Path) -> None:
    with served(model, tmp_path / "server.log") as engine:
        found = probed(engine)
    assert told(found) == []
    assert found.record.passed
    assert {one.check for one in found.results} == set(NAMES)
    (configuration,) = found.record.configurations
    assert configuration.pool_tokens == (BLOCKS - 1) * BLOCK_TOKENS
    assert configuration.version == "0.32.0"
    assert configuration.flags["enable-prefix-caching"] == "True"


def test_blocks_that_are_kept_fail_the_checks_of_release(model: Path, tmp_path: Path) -> None:
    with served(model, tmp_path / "server.log", keeps_every=1) as engine:
        found = probed(engine, RELEASES)
    failed = {one.check for one in found.results if one.said.verdict is Verdict.FAIL}
    assert failed == set(RELEASES), told(found)


def test_salts_that_are_ignored_fail_their_check(model: Path, tmp_path: Path) -> None:
    more = ("--scheduler-cls", "tests.engine.unsalted.UnsaltedScheduler")
    with served(model, tmp_path / "server.log", more=more) as engine:
        found = probed(engine)
    failed = {one.check for one in found.results if one.said.verdict is Verdict.FAIL}
    assert failed == {"salts"}, told(found)
