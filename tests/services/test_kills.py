"""Services that were killed start again with what they promise to keep."""

import time
from pathlib import Path

import psycopg
import pytest

from tests.fakes.receiver import receiver
from tests.services.alertmanager import alertmanager
from tests.services.postgres import PASSWORD, SURVIVES_KILLS, running
from tests.services.prometheus import prometheus

ROWS = 200
SAMPLES_S = 30.0
"""A scrape takes half a second, on a machine that may be busy."""


def test_postgresql_has_every_committed_row_after_its_recovery() -> None:
    with running(options=SURVIVES_KILLS) as server:
        url = server.new_database()
        with psycopg.connect(url, password=PASSWORD, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept (number integer)")
            for number in range(ROWS):
                connection.execute("INSERT INTO kept VALUES (%s)", (number,))
            server.kill()
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        server.start()
        with psycopg.connect(url, password=PASSWORD) as connection:
            assert connection.execute("SELECT count(*) FROM kept").fetchone() == (ROWS,)
        assert "automatic recovery in progress" in (server.folder / "log").read_text()


def test_prometheus_has_its_samples(tmp_path: Path) -> None:
    with prometheus(tmp_path, targets={"nobody": ["127.0.0.1:9"]}) as server:
        until_s = time.monotonic() + SAMPLES_S
        while not server.query("up") and time.monotonic() < until_s:
            time.sleep(0.1)
        before_s = time.time()
        server.service.kill()
        with pytest.raises(OSError, match="refused"):
            server.query("up")
        server.service.start()
        found = server.query(f"up[1m] @ {before_s}")
        assert [one["metric"]["job"] for one in found] == ["nobody"]


def test_alertmanager_answers_again(tmp_path: Path) -> None:
    with receiver() as hook, alertmanager(tmp_path, webhook=hook.url) as server:
        server.service.kill()
        server.service.start()
        assert server.alerts() == []
