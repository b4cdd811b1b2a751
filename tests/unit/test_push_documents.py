"""What is published about the push port is true: its description and the example callback."""

import asyncio
import json
import runpy
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest

from ingest.push.openapi import document
from ingest.push.schema import PushedRequest
from ingest.schema_records import SequenceRecord
from tests.content.tree import ROOT
from tests.unit.pushes import Port, opened, request

EXAMPLE = ROOT / "docs" / "examples" / "litellm_bleedwatch.py"


@pytest.fixture
def port() -> Iterator[Port]:
    with opened() as port:
        yield port


def test_the_description_is_what_the_code_says() -> None:
    """`python -m ingest.push.openapi > docs/openapi-sidecar.json` renews it."""
    published = (ROOT / "docs" / "openapi-sidecar.json").read_text(encoding="utf-8")
    assert json.loads(published) == document()


def test_every_path_that_is_described_is_served(port: Port) -> None:
    for path, methods in document()["paths"].items():
        for method in methods:
            status = port.ask(method.upper(), path).status
            assert status not in {404, 405}, path
            assert str(status) in methods[method]["responses"], (path, status)


def test_references_lead_somewhere() -> None:
    text = json.dumps(document())
    known = {f"#/components/schemas/{name}" for name in document()["components"]["schemas"]}
    assert {part.split('"')[0] for part in text.split('"$ref": "')[1:]} <= known


def test_the_documented_request_is_what_is_taken(port: Port) -> None:
    fields = document()["components"]["schemas"]["PushedRequest"]["properties"]
    assert set(request()) <= set(fields)
    assert set(fields) == set(PushedRequest.__struct_fields__)
    assert port.push(request()).status == 202


class _Litellm:
    """LiteLLM as far as a callback sees it: its base class, and the arguments of a call."""

    class CustomLogger:
        pass

    def __init__(self) -> None:
        self.start = datetime(2026, 7, 1, 12, tzinfo=UTC)
        self.end = self.start + timedelta(milliseconds=750)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The documented logging payload, as far as it concerns us and some more."""
        return {
            "model": "m",
            "messages": [{"role": "user", "content": "words that must not be pushed"}],
            "standard_logging_object": {
                "id": "chatcmpl-1",
                "call_type": "acompletion",
                "model": "hosted_vllm/qwen",
                "model_id": "engine-0",
                "cache_hit": None,
                "startTime": self.start.timestamp(),
                "endTime": self.end.timestamp(),
                "messages": [{"role": "user", "content": "words that must not be pushed"}],
                "metadata": {
                    "user_api_key_hash": "88dc28d0f030c55ed4ab77ed8faf098196cb1c05",
                    "user_api_key_team_id": "acme",
                    "user_api_key_end_user_id": "user-7",
                },
            },
        }

    def answer(self, *choices: list[int]) -> SimpleNamespace:
        """An answer of vLLM with `return_token_ids`, as LiteLLM rebuilds it."""
        return SimpleNamespace(
            id="chatcmpl-1",
            prompt_token_ids=list(range(40)),
            choices=[
                SimpleNamespace(
                    index=number,
                    finish_reason="stop",
                    provider_specific_fields={"token_ids": ids, "stop_reason": None},
                )
                for number, ids in enumerate(choices)
            ],
        )


@pytest.fixture
def example(port: Port, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = ModuleType("litellm.integrations.custom_logger")
    module.CustomLogger = _Litellm.CustomLogger  # type: ignore[attr-defined]
    for name in ("litellm", "litellm.integrations"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("BLEEDWATCH_URL", f"http://127.0.0.1:{port.server.port}")
    return runpy.run_path(str(EXAMPLE))["callback"]


def test_the_litellm_callback_pushes_what_was_asked_and_answered(port: Port, example: Any) -> None:
    fake = _Litellm()
    answer = fake.answer([1, 2, 3], [4, 5])
    asyncio.run(example.async_log_success_event(fake.kwargs, answer, fake.start, fake.end))
    found = port.intake.feed(0.0)
    assert [
        (one.request_id, one.parent_id, one.kind, one.token_count)
        for one in found
        if isinstance(one, SequenceRecord)
    ] == [
        ("chatcmpl-1", None, "prompt", 40),
        ("chatcmpl-1", None, "response", 3),
        ("chatcmpl-1-1", "chatcmpl-1", "prompt", 40),
        ("chatcmpl-1-1", "chatcmpl-1", "response", 2),
    ]
    first, second, *_ = found
    assert isinstance(first, SequenceRecord)
    assert isinstance(second, SequenceRecord)
    assert (first.tenant, first.end_user, first.engine) == ("acme", "user-7", "engine-0")
    assert second.ended_at_ms - first.started_at_ms == 750
    assert b"words" not in b"".join(msgspec.json.encode(one) for one in found)


def test_the_litellm_callback_survives_a_sidecar_that_is_away(port: Port, example: Any) -> None:
    port.server.close()
    fake = _Litellm()
    asyncio.run(
        example.async_log_success_event(fake.kwargs, fake.answer([1]), fake.start, fake.end)
    )
    assert port.intake.feed(0.0) == []


def test_the_example_is_short() -> None:
    assert len(Path(EXAMPLE).read_text(encoding="utf-8").splitlines()) < 60
