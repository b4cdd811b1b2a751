"""`outputs list`, `outputs journal` and `test alert`, as people call them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from typer.testing import CliRunner, Result

from detector.cli.app import app
from exporters.incidents.model import ChangeKind
from exporters.sending.announce import announce
from exporters.store.database import open_store
from exporters.store.settings import StoreSettings
from tests.alerts.kit import change, secret_file
from tests.alerts.sender_main import settings
from tests.fakes.receiver import Receiver, receiver


class Desk(NamedTuple):
    """A configuration with a webhook, a file and a store."""

    config: str
    store_url: str
    hook: Receiver
    lines: Path

    def call(self, *words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--config", self.config])

    def rows(self, *words: str) -> list[dict[str, Any]]:
        done = self.call(*words, "-o", "json")
        assert done.exit_code == 0, done.output
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with receiver() as hook:
        store_url = f"sqlite:///{tmp_path}/store.db"
        lines = tmp_path / "alerts.jsonl"
        url_file = secret_file(tmp_path, "url", f"{hook.url}/very-secret")
        outputs = [
            {"kind": "webhook", "name": "hook", "url_file": url_file, "allow_private": True},
            {"kind": "stdout", "name": "lines", "path": str(lines)},
        ]
        config = tmp_path / "bleedwatch.yaml"
        config.write_text(yaml.safe_dump({"store": {"url": store_url}, "outputs": outputs}))
        yield Desk(str(config), store_url, hook, lines)


def test_a_test_alert_arrives_everywhere_and_is_in_the_journal(desk: Desk) -> None:
    rows = desk.rows("test", "alert")
    assert [(row["output"], row["outcome"]) for row in rows] == [
        ("hook", "delivered"),
        ("lines", "delivered"),
    ]
    assert json.loads(desk.hook.calls[0].body)["type"] == "test.ping"
    assert desk.hook.calls[0].id == rows[0]["notification"]
    assert json.loads(desk.lines.read_text())["type"] == "test.ping"
    lines = desk.rows("outputs", "journal")
    assert [line["output"] for line in lines] == ["lines", "hook"]
    assert [line["answer"] for line in lines] == ["written", "204"]


def test_one_output_can_be_asked_for(desk: Desk) -> None:
    (row,) = desk.rows("test", "alert", "--to", "lines")
    assert row["output"] == "lines"
    assert desk.hook.calls == []
    assert desk.rows("outputs", "journal", "--to", "hook") == []


def test_an_alert_that_does_not_arrive_is_an_exit_of_1(desk: Desk) -> None:
    desk.hook.behave("fails")
    done = desk.call("test", "alert")
    assert done.exit_code == 1
    assert "500" in done.stdout
    assert "not delivered to hook" in done.output
    states = {row["name"]: row for row in desk.rows("outputs", "list")}
    assert states["hook"]["last"] == "failed: 500"
    assert states["lines"]["last"] == "delivered: written"


def test_a_dry_run_sends_nothing_and_shows_what_it_would(desk: Desk) -> None:
    rows = desk.rows("test", "alert", "--dry-run")
    assert [row["target"] for row in rows] == ["<secret>", str(desk.lines)]
    assert rows[0]["notification"]["type"] == "test.ping"
    assert desk.hook.calls == []
    assert desk.rows("outputs", "journal") == []


def test_an_output_that_does_not_exist_is_told_with_those_that_do(desk: Desk) -> None:
    done = desk.call("test", "alert", "--to", "pager")
    assert str(done.exception) == "outputs: there is no output pager (there are hook, lines)"


def test_without_outputs_there_is_nothing_to_test() -> None:
    done = CliRunner().invoke(app, ["test", "alert"], env={"BLEEDWATCH_CONFIG": ""})
    assert "no outputs are set" in str(done.exception)


def test_the_list_shows_what_waits_and_no_secret(desk: Desk) -> None:
    database = open_store(StoreSettings(url=desk.store_url))
    changes = [change(), change(ChangeKind.SEVERITY_RAISED, version=2)]
    with database.write() as connection:
        announce(connection, changes, outputs=settings(desk.store_url, desk.hook.url).outputs)
    database.close()
    done = desk.call("outputs", "list", "-o", "json")
    states = {row["name"]: row for row in json.loads(done.stdout)}
    assert states["hook"]["waiting"] == 2
    assert states["hook"]["target"] == "<secret>"
    assert states["lines"]["waiting"] == 0
    assert "very-secret" not in done.output + desk.call("outputs", "list").output
