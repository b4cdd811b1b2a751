"""`run all --incidents`: what it finds becomes incidents that the next run goes on with."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from exporters.incidents.model import Incident, State
from exporters.store import findings as finding_rows
from exporters.store import incidents as incident_rows
from exporters.store.database import open_store
from exporters.store.request_rows import requests_named
from exporters.store.settings import DAY_MS, StoreSettings
from tests.e2e.program import Capture, call
from tests.e2e.traffic import pairs, write_config, write_jsonl

PAIRS = 4


def stored(url: str) -> tuple[list[Incident], set[str]]:
    """Return the incidents of a store and the ids of their findings."""
    with closing(open_store(StoreSettings(url=url))) as database, database.read() as connection:
        incidents = incident_rows.newest(connection, limit=10)
        members = [finding_rows.findings_of(connection, one.id) for one in incidents]
    return incidents, {each.observed.finding.id for of_one in members for each in of_one}


def test_findings_become_one_incident_that_a_second_run_repeats(
    tmp_path: Path, capsys: Capture
) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    log = write_jsonl(tmp_path / "log.jsonl", pairs(PAIRS))
    config = write_config(
        tmp_path / "config.yaml",
        detection={"commonness": {"learning_ms": 0}},
        store={"url": url},
        api={"port": 0},
        outputs=[{"kind": "stdout", "name": "file", "path": str(tmp_path / "alerts.jsonl")}],
    )
    told: set[str] = set()
    for _ in range(2):
        code, out, err = call(
            capsys, "run", "all", log, "--incidents", "--config", config, "-o", "json"
        )
        assert code == 1, err
        told = {one["id"] for one in json.loads(out)["findings"]}
        (one,), members = stored(url)
        assert members == told
        assert (one.state, one.finding_count) == (State.ONGOING, len(told))
        assert one.tenants == ("acme", "globex")
    assert len(told) == PAIRS
    (alert,) = (tmp_path / "alerts.jsonl").read_text().splitlines()
    assert json.loads(alert)["type"] == "incident.opened"


def test_without_the_flag_no_store_is_made(tmp_path: Path, capsys: Capture) -> None:
    log = write_jsonl(tmp_path / "log.jsonl", pairs(1))
    config = write_config(tmp_path / "config.yaml", store={"url": f"sqlite:///{tmp_path}/store.db"})
    call(capsys, "run", "all", log, "--config", config)
    assert not (tmp_path / "store.db").exists()


def test_rows_of_requests_are_kept(tmp_path: Path, capsys: Capture) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    requests = pairs(1)
    log = write_jsonl(tmp_path / "log.jsonl", requests)
    # The times of this traffic are relative: it happened in 1970.
    keep = {"url": url, "retention": {"requests_ms": 100 * 365 * DAY_MS}}
    config = write_config(tmp_path / "config.yaml", store=keep)
    call(capsys, "run", "all", log, "--incidents", "--config", config)
    with closing(open_store(StoreSettings(url=url))) as database, database.read() as connection:
        (row,) = requests_named(connection, str(requests[0].request_id), limit=2)
    assert row.prompt_tokens == len(requests[0].prompt_ids)


def test_a_store_that_cannot_be_opened_ends_it_before_anything_is_read(
    tmp_path: Path, capsys: Capture
) -> None:
    log = write_jsonl(tmp_path / "log.jsonl", pairs(1))
    url = f"store.url=sqlite:///{tmp_path}/none/store.db"
    code, out, err = call(capsys, "run", "all", log, "--incidents", "--set", url)
    assert (code, out) == (2, "")
    assert "error: sqlite:///" in err
    assert "next: see that it is there" in err


def test_results_that_the_store_refuses_to_the_end_are_shown_and_are_an_error(
    tmp_path: Path, capsys: Capture
) -> None:
    with closing(open_store(StoreSettings(url=f"sqlite:///{tmp_path}/store.db"))):
        pass
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON findings BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
    log = write_jsonl(tmp_path / "log.jsonl", pairs(1))
    config = write_config(
        tmp_path / "config.yaml",
        detection={"commonness": {"learning_ms": 0}},
        store={"url": f"sqlite:///{tmp_path}/store.db"},
        api={"port": 0},
    )
    code, out, err = call(
        capsys, "run", "all", log, "--incidents", "--config", config, "-o", "jsonl"
    )
    assert code == 2
    assert json.loads(out)["rule"] == "BW001"
    assert "messages of findings and requests are not recorded" in err
    assert "next: make room in the store" in err
