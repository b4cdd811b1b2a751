"""A look-back shows who, when and where, and never what: no text, id or hash gets out."""

from pathlib import Path

import pytest

from detector.trace.response import Response
from tests.e2e.traffic import pairs
from tests.privacy.canary import IDS
from tests.privacy.sandbox import PAIRS, Sandbox
from tests.unit.sequences import response, text


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_no_form_shows_content(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], form: str
) -> None:
    box = Sandbox(tmp_path)
    answered = pairs(PAIRS, content=IDS)[1].request_id
    options = ("--config", box.config, "-o", form)
    box.call(capfdbinary, "trace", answered, box.jsonl, *options, code=1)
    box.call(capfdbinary, "trace", "nobody", box.jsonl, *options, code=2)
    box.call(capfdbinary, "trace", answered, box.jsonl, "--since", box.jsonl, code=2)
    assert not box.sweep()


def test_a_response_shows_no_hash() -> None:
    tokens = text(1, 12)
    shown = repr(Response(response("b", "r", 1, tokens), tokens, ()))
    assert not [token for token in tokens.tolist() if str(token) in shown]
    assert "tokens=12" in shown
