"""APIs that tests share: one over an empty store of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.kit import Served, served


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        yield running
