"""A defect in the API, met while it holds content and secrets: its answer and its log have none."""

import logging
from pathlib import Path

import pytest

from tests.http.kit import READER, WRITER, served
from tests.privacy.canary import TEXT

PATHS = ("/v1/findings", "/v1/incidents", "/incidents", "/v1/findings/f1", "/rules", "/v1/coverage")


def test_a_fault_tells_where_and_not_what(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    with served(tmp_path) as api:

        def fail(*arguments: object, **named: object) -> None:
            raise ValueError(f"{TEXT} {READER} {WRITER}", arguments, named)

        monkeypatch.setattr(type(api.database), "read", fail)
        answers = []
        for path in PATHS:
            with api.client(WRITER) as client:  # the server ends the connection behind a fault
                answers.append(client.get(path))
    assert {answer.status_code for answer in answers} == {500}
    out, err = capfd.readouterr()
    ours = [one for one in caplog.records if not one.name.startswith(("httpx", "httpcore"))]
    told = [answer.text + str(answer.headers) for answer in answers]
    told += [one.getMessage() + str(one.exc_text) + str(one.exc_info) for one in ours]
    assert "internal fault (ValueError)" in caplog.text
    assert not [
        word for word in (TEXT, READER, WRITER) for text in (*told, out, err) if word in text
    ]
