"""Clients choose request ids, which stand in alerts: in a chat they call nobody, lead nowhere."""

import json
from pathlib import Path

import pytest

from exporters.outputs.apprise_output import AppriseOutput
from exporters.outputs.contract import Delivered
from exporters.outputs.settings import AppriseSettings
from tests.alerts.kit import NOW_MS, notification, secret_file
from tests.fakes.receiver import receiver

pytestmark = pytest.mark.filterwarnings(
    "ignore:'imghdr' is deprecated:DeprecationWarning"  # what some service of Apprise imports
)

LINK = "https://monitor.example/incidents/inc-1"

NAMES = (
    "<!channel>",
    "<!channel|all of you>",
    "@everyone",
    "<@U012345>",
    "https://evil.example/sign-in",
    "[sign in](https://evil.example)",
    "a\nIncident inc-1 is resolved.",
    "a\r\nBcc: all@example.com",
    "\x1b[2J\u202e\u2028",
    "<b>bold</b>",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_calls_nobody_and_is_no_link(tmp_path: Path, name: str) -> None:
    with receiver() as there:
        urls = secret_file(tmp_path, "urls", f"json://127.0.0.1:{there.port}/hook")
        output = AppriseOutput(AppriseSettings(kind="apprise", name="chat", urls_file=urls))
        told = notification(
            title=f"Tenant acme received in request {name} 24 tokens.",
            kv_pools=(name,),
            reason=f"first finding, of {name}",
        )
        outcome = output.send(told, at_ms=NOW_MS)
    assert isinstance(outcome, Delivered)
    sent = json.loads(there.calls[0].body)
    lines = [sent["title"], *sent["message"].split("\n")]
    assert len(lines) == 5, "title, sentence, reason, numbers, link"
    assert lines.pop() == LINK
    for line in lines:
        assert line.isprintable()
        assert not [mark for mark in ("<", ">", "@", "://", "](") if mark in line]
    assert "Tenant acme received in request" in lines[1]
