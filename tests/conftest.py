"""Where recorded traffic lies, and what is not collected without it or without torch.

BLEEDWATCH_EVAL_DATA names a folder of recorded traffic. Without it the folders of RECORDED are left
out, and the header of the run says so; everything else runs on traffic made here. tests/long, which
needs recorded traffic and many minutes, is collected by `make long` only, and the header says so;
tests/engine, which needs a genuine engine, by `make test-engine` only.
tests/torch_path is collected only where torch is installed; without a CUDA device it runs on the
CPU.
"""

import os
import signal
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest_plugins = ["tests.kafka.fixtures", "tests.services.postgres", "tests.store.databases"]

VARIABLE = "BLEEDWATCH_EVAL_DATA"

RECORDED = {
    "eval_data": "detection on recorded traffic",
    "engine_logs": "readers on genuine engine logs",
}
"""Folders below tests/ that need recorded traffic, and what they try."""

_FOLDER = os.environ.get(VARIABLE)

LONG = "BLEEDWATCH_TEST_LONG"
"""Set by `make long`: the tests that take many minutes are collected too."""

_LONG = bool(_FOLDER and os.environ.get(LONG))

_ENGINE = os.environ.get("BLEEDWATCH_TEST_ENGINE")
"""Set by `make test-engine`: the environment that holds a genuine engine."""

_TORCH = find_spec("torch") is not None

collect_ignore = [] if _FOLDER else list(RECORDED)
collect_ignore += [] if _LONG else ["long"]
collect_ignore += [] if _ENGINE else ["engine"]
collect_ignore += [] if _TORCH else ["torch_path"]

_TESTS_OF_ITS_ID = pytest.StashKey[int]()


def pytest_configure() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # as in the background of a shell script: programs that tests interrupt would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if _FOLDER and not Path(_FOLDER).is_dir():
        raise pytest.UsageError(f"{VARIABLE} names no folder: {_FOLDER}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tests = Counter(item.nodeid for item in items)
    for item in items:
        item.stash[_TESTS_OF_ITS_ID] = tests[item.nodeid]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail where tests share an id: a worker looks tests up by id, and would run one of them."""
    if item.stash[_TESTS_OF_ITS_ID] > 1:
        pytest.fail(f"{item.stash[_TESTS_OF_ITS_ID]} tests have this id", pytrace=False)


def pytest_report_header() -> list[str]:
    torch = "installed" if _TORCH else "not installed; not collected: tests/torch_path (gpu extra)"
    long = "collected" if _LONG else "not collected: tests/long (make long)"
    engine = f"in {_ENGINE}" if _ENGINE else "not collected: tests/engine (make test-engine)"
    told = [f"torch: {torch}", f"long tests: {long}", f"genuine engine: {engine}"]
    if _FOLDER:
        return [f"recorded traffic: {_FOLDER}", *told]
    left_out = "; ".join(f"tests/{name} ({what})" for name, what in RECORDED.items())
    return [
        f"recorded traffic: none, {VARIABLE} is not set; not collected: {left_out}",
        *told,
    ]


@pytest.fixture(scope="session")
def recorded_traffic() -> Path:
    """Return the folder of recorded traffic; only for tests in the folders of RECORDED."""
    assert _FOLDER, f"{VARIABLE} is not set"
    return Path(_FOLDER)
