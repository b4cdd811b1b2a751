"""Three rounds of each kind of trouble: nothing is lost, and nothing new appears."""

from pathlib import Path

import pytest

from tests.chaos.__main__ import run
from tests.chaos.scenarios import SCENARIOS
from tests.kafka.cluster import running

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed <socket.socket:ResourceWarning",
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning",
)
"""kafka-python leaves sockets of a broker that went away to the garbage collector."""

ROUNDS = 3


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_lost(name: str, tmp_path: Path) -> None:
    with running(tmp_path / "kafka") as server:
        rounds = run(SCENARIOS[name], ROUNDS, server, tmp_path)
    assert sum(one.counted for one in rounds) == ROUNDS
    assert min(one.findings for one in rounds) >= 100
    assert [(one.lost, one.strange) for one in rounds] == [(0, 0)] * len(rounds)
