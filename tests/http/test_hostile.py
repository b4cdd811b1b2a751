"""What is asked in bad faith: nothing of it reaches a path, a statement, a template or a log."""

import logging

import pytest

from exporters.http.cursors import cursor
from exporters.store.finding_list import FindingPlace
from exporters.store.incident_list import IncidentPlace
from tests.http.kit import READER, WRITER, Served
from tests.http.scene import HOSTILE
from tests.privacy.canary import TEXT
from tests.store.made import found

INJECTIONS = (
    "' OR '1'='1",
    "x'; DROP TABLE findings; --",
    "../../../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "{{7*7}}",
    "{% raw %}${7*7}",
    "%00",
    "a\x00b",
    "\ufffe\u202e",
    HOSTILE,
    "\r\nSet-Cookie: bleedwatch_session=x",
)


@pytest.fixture
def with_one(api: Served) -> Served:
    api.record(found("f1", 10, sink=HOSTILE))
    return api


@pytest.mark.parametrize("text", INJECTIONS)
def test_injections_find_nothing_and_break_nothing(with_one: Served, text: str) -> None:
    with with_one.client(WRITER) as client:
        for name in ("tenant", "kv_pool", "rule", "cursor", "incident_id", "limit"):
            answer = client.get("/v1/findings", params={name: text})
            assert answer.status_code in {200, 400, 422}, (name, answer.text)
            expected = ["f1"] if (name, text) == ("tenant", HOSTILE) else []
            if answer.status_code == 200:
                assert [one["finding"]["id"] for one in answer.json()["findings"]] == expected
            page = client.get("/incidents", params={name: text} if name != "limit" else {})
            assert page.status_code in {200, 400, 422}
            assert "49" not in page.text
            assert "<script" not in page.text
            assert "set-cookie" not in page.headers
        for path in ("/v1/findings/", "/v1/incidents/", "/incidents/", "/runbooks/", "/static/"):
            answer = client.get(path + text.replace("\x00", "%00").replace("\r\n", "%0d%0a"))
            assert answer.status_code in {404, 422}, path
            assert "root:" not in answer.text
        bodies = {"tenants": [text], "comment": text}
        made = client.post("/v1/silences", json=bodies)
        assert made.status_code in {201, 422}
        assert client.get("/v1/findings/f1").status_code == 200, "everything is still there"


@pytest.mark.parametrize("path", ["/v1/findings", "/v1/incidents", "/findings", "/incidents"])
@pytest.mark.parametrize("kind", [FindingPlace, IncidentPlace])
def test_a_place_beyond_every_database_is_no_cursor(
    with_one: Served, path: str, kind: type[FindingPlace | IncidentPlace]
) -> None:
    with with_one.client(WRITER) as client:
        answer = client.get(path, params={"cursor": cursor(kind(10**30, "a"))})
        assert answer.status_code in {400, 404, 422}


def test_a_cursor_of_one_list_is_none_of_another(with_one: Served) -> None:
    ended = cursor(IncidentPlace(2**40, "a"))
    with with_one.client(WRITER) as client:
        assert client.get("/v1/incidents", params={"cursor": ended}).status_code == 200
        for other in ("/v1/findings", "/v1/allow-list", "/v1/outputs/journal"):
            answer = client.get(other, params={"cursor": ended})
            assert answer.status_code == 400
            assert answer.json()["errors"][0]["field"] == "query.cursor"


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"verdict": "maybe"}', b'{"verdict": "none", "more": 1}',
     b'{"verdict": "\\ud800"}', b"\xff\xfe", b"[" * 30_000],
)  # fmt: skip
def test_broken_bodies_are_problems_that_repeat_nothing(with_one: Served, body: bytes) -> None:
    with with_one.client(WRITER) as client:
        headers = {"Content-Type": "application/json"}
        answer = client.put("/v1/findings/f1/verdict", content=body, headers=headers)
        assert answer.status_code in {400, 422}
        assert answer.headers["content-type"] == "application/problem+json"
        told = answer.json()
        assert told["status"] == answer.status_code
        assert "maybe" not in answer.text
        plain = client.put("/v1/findings/f1/verdict", content=b'{"verdict": "none"}')
        assert plain.status_code == 422, "a form of another site sends no JSON"


def test_secrets_and_what_was_sent_are_in_no_answer_and_no_log(
    with_one: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    asked = ({"limit": TEXT}, {"rule": TEXT}, {"cursor": TEXT}, {"nothing": TEXT}, {TEXT: 1})
    with with_one.client(WRITER) as client:
        answers = [client.get("/v1/findings", params=one) for one in asked]
        answers.append(client.put("/v1/findings/f1/verdict", json={"verdict": TEXT, TEXT: 1}))
        answers.append(client.get(f"/v1/findings/{TEXT}"))
        answers.append(client.post("/login", data={"token": TEXT}))
        answers += [client.get(path) for path in ("/incidents", "/incidents/inc-f1", "/v1/outputs")]
    with with_one.client(READER) as client:
        answers.append(client.get("/incidents/inc-f1"))
    ours = [
        record for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))
    ]
    logged = "\n".join(record.getMessage() for record in ours)
    for answer in answers:
        everything = f"{answer.text}{answer.headers}"
        assert not [word for word in (TEXT, WRITER, READER) if word in everything]
    assert not [word for word in (TEXT, WRITER, READER) if word in logged]
