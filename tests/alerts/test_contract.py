"""What every output keeps: what is taken is delivered, what is not is tried again, secrets stay."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from exporters.outputs.alertmanager import AlertmanagerOutput
from exporters.outputs.apprise_output import AppriseOutput
from exporters.outputs.contract import Delivered, Output, Rejected, Retry
from exporters.outputs.kafka import Headers, KafkaOutput
from exporters.outputs.lines import LinesOutput
from exporters.outputs.notification import Kind
from exporters.outputs.settings import (
    AlertmanagerSettings,
    AppriseSettings,
    KafkaOutputSettings,
    StdoutSettings,
    WebhookSettings,
)
from exporters.outputs.webhook import WebhookOutput
from ingest.broker import Message, TopicPartition
from ingest.memory_io import MemoryBroker
from tests.alerts.kit import NOW_MS, notification, secret_file
from tests.fakes.receiver import receiver

pytestmark = pytest.mark.filterwarnings(
    "ignore:'imghdr' is deprecated:DeprecationWarning"  # what some service of Apprise imports
)

SECRET = "whsec_" + "c2VjcmV0" * 5
TOKEN = "token-that-nobody-may-see"


class Subject(NamedTuple):
    """An output, what its receiver has got so far as text, and what takes its receiver away."""

    output: Output
    got: Callable[[], list[str]]
    leave: Callable[[], None]


class MemoryTopic:
    """A topic of the broker in memory, as an output wants it."""

    def __init__(self) -> None:
        self.broker = MemoryBroker({"alerts": 1})
        self._publisher = self.broker.publisher()

    def publish(self, key: bytes, value: bytes, headers: Headers) -> "Future[int]":
        return self._publisher.send(Message("alerts", value, key=key, headers=headers))

    def close(self) -> None:
        self._publisher.close()

    def values(self) -> list[str]:
        reader = self.broker.reader()
        reader.assign({TopicPartition("alerts", 0): 0})
        return [(record.value or b"").decode() for record in reader.poll(0.0)]


def over_http(kind: str, folder: Path, stack: ExitStack) -> Subject:
    there = stack.enter_context(receiver())
    common = {
        "name": "there",
        "url": there.url,
        "allow_private": True,
        "token_file": secret_file(folder, "token", TOKEN),
    }
    secrets = secret_file(folder, "secrets", SECRET)
    output: Output
    if kind == "alertmanager":
        output = AlertmanagerOutput(AlertmanagerSettings.model_validate({**common, "kind": kind}))
    elif kind == "apprise":
        url = f"json://:{TOKEN}@127.0.0.1:{there.port}/hook"
        urls = secret_file(folder, "urls", url)
        output = AppriseOutput(AppriseSettings(kind="apprise", name="there", urls_file=urls))
    else:
        form = "native" if kind == "native" else "alertmanager"
        values = {**common, "kind": "webhook", "format": form, "secrets_file": secrets}
        output = WebhookOutput(WebhookSettings.model_validate(values))
    return Subject(
        output,
        lambda: [call.body.decode() for call in there.calls],
        lambda: there.behave("down"),
    )


def to_a_file(folder: Path) -> Subject:
    path = folder / "sub" / "alerts.jsonl"
    path.parent.mkdir()
    output = LinesOutput(StdoutSettings(kind="stdout", name="there", path=str(path)))

    def leave() -> None:
        path.unlink(missing_ok=True)
        path.parent.rmdir()

    return Subject(output, lambda: path.read_text().splitlines(), leave)


def to_a_topic() -> Subject:
    topic = MemoryTopic()
    settings = KafkaOutputSettings(kind="kafka", name="there", topic="alerts")
    return Subject(KafkaOutput(settings, topic), topic.values, topic.close)


@pytest.fixture(params=["alertmanager", "native", "v4", "apprise", "kafka", "lines"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    with ExitStack() as stack:
        match request.param:
            case "lines":
                made = to_a_file(tmp_path)
            case "kafka":
                made = to_a_topic()
            case kind:
                made = over_http(kind, tmp_path, stack)
        yield made
        made.output.close()


def test_what_is_taken_is_delivered(subject: Subject) -> None:
    assert isinstance(subject.output.send(notification(), at_ms=NOW_MS), Delivered)
    (text,) = subject.got()
    assert "inc-1" in text
    assert "A response to globex repeats 31 tokens of a prompt of acme." in text


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_can_be_told(subject: Subject, kind: Kind) -> None:
    told = notification(kind, incident_id="inc-1" if kind.startswith("incident") else "")
    assert isinstance(subject.output.send(told, at_ms=NOW_MS), Delivered)


def test_the_same_notification_is_told_in_the_same_words(subject: Subject) -> None:
    for _ in range(2):
        subject.output.send(notification(), at_ms=NOW_MS)
    first, second = subject.got()
    assert first == second


def test_a_receiver_that_is_away_is_tried_again(subject: Subject) -> None:
    subject.leave()
    outcome = subject.output.send(notification(), at_ms=NOW_MS)
    assert isinstance(outcome, Retry)
    assert TOKEN not in outcome.answer


def test_what_an_output_shows_of_itself_has_no_secret(subject: Subject) -> None:
    subject.output.send(notification(), at_ms=NOW_MS)
    shown = f"{subject.output!r} {vars(subject.output)!r}"
    assert SECRET not in shown
    assert TOKEN not in shown


def test_an_answer_of_gone_is_told_as_such() -> None:
    with receiver("gone") as there:
        settings = WebhookSettings(kind="webhook", name="w", url=there.url, allow_private=True)
        output = WebhookOutput(settings)
        assert output.send(notification(), at_ms=NOW_MS) == Rejected("410", gone=True)
        assert json.loads(there.calls[0].body)["type"] == "incident.opened"
        assert "webhook-signature" not in there.calls[0].headers
