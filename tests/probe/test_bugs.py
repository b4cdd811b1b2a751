"""Each fault of an engine fails the check that stands for it; without faults all are passed."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import pytest

from detector.check.verdict import Verdict
from detector.probe.plan import NAMES
from detector.probe.probing import Probed
from detector.rules.canary import CANARY_ECHOED
from detector.sample.language import load_language
from tests.fakes.cluster.bugs import Bug
from tests.fakes.http_engine import EngineOptions, http_engine
from tests.fakes.serving import SERVED_BUGS
from tests.probe.kit import checks, probed

POOL: Final = 8_192
DELAY_S: Final = 0.0005
"""What a token takes: a long answer is under way for seconds, so that clients can leave it."""

FAILS: Final = {
    Bug.STALE_AFTER_REJECT: {"boundary", "canary-over-limit"},
    Bug.OVER_LIMIT_ANSWERED: {"boundary"},
    Bug.FREED_WHILE_DECODING: {"canary-concurrent"},
    Bug.BATCH_ROW_REUSED: {"canary-short"},
    Bug.CACHE_KEY_WITHOUT_TENANT: {"salts"},
    Bug.CACHE_KEY_COLLISION: {"salts", "canary-short", "canary-concurrent"},
    Bug.RESPONSE_SWAPPED: {"canary-concurrent"},
    Bug.UNRELEASED_AFTER_ABORT: {"release-after-abort", "release-after-time-out"},
    Bug.UNRELEASED_AFTER_REJECT: {"release-after-refusal"},
    Bug.USAGE_MISMATCH: {"usage"},
    Bug.DEGENERATE_OUTPUT: {"varied-answers"},
}
"""Checks that must fail, and no others may; what a fault keeps from being seen is unknown."""

Runs = dict[tuple[str, Bug | None], Future[Probed]]


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    """Probe all engines at once: a probe waits more than it works."""
    language = load_language()

    def run(kind: str, bug: Bug | None) -> Probed:
        bugs = set() if bug is None else {bug}
        options = EngineOptions(
            kind=kind, pool_tokens=POOL, context_tokens=POOL, bugs=bugs, delay_s=DELAY_S
        )
        with http_engine(language, options) as engine:
            return probed(engine)

    wanted = [("sglang", None), ("vllm", None), *(("sglang", bug) for bug in FAILS)]
    with ThreadPoolExecutor(4) as pool:
        yield {one: pool.submit(run, *one) for one in wanted}


@pytest.mark.parametrize("kind", ["sglang", "vllm"])
def test_an_engine_without_faults_passes_every_check(runs: Runs, kind: str) -> None:
    found = runs[kind, None].result()
    assert checks(found, Verdict.PASS) == set(NAMES)
    assert found.record.passed
    assert found.findings == []


@pytest.mark.parametrize("bug", FAILS)
def test_a_fault_fails_its_checks_and_no_others(runs: Runs, bug: Bug) -> None:
    found = runs["sglang", bug].result()
    assert checks(found, Verdict.FAIL) == FAILS[bug]
    assert not found.record.passed


def test_every_fault_of_the_fake_is_probed_for() -> None:
    assert FAILS.keys() == SERVED_BUGS


@pytest.mark.parametrize("bug", FAILS)
def test_a_canary_that_surfaces_is_a_finding(runs: Runs, bug: Bug) -> None:
    found = runs["sglang", bug].result()
    told = {(one.rule, one.runtime["check"]) for one in found.findings if one.runtime}
    planted = {name for name in FAILS[bug] if name.startswith("canary")}
    assert told == {(CANARY_ECHOED, name) for name in planted}
    for one in found.findings:
        assert one.evidence.unexplained_tokens == sum(run.length for run in one.evidence.runs)
        assert one.source.tenant != one.sink.tenant
