"""Who may read and who may change: tokens, sessions, forms, proxies, and nobody else."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError

from detector.errors import SettingsError
from exporters.http.access import COOKIE, Access
from exporters.http.app import application
from exporters.http.guard import MAX_BODY_BYTES
from exporters.http.sessions import SESSION_MS, Sessions
from exporters.http.settings import ApiSettings
from exporters.http.tokens import READ_AGAIN_S, Caller, Tokens
from tests.http.kit import NOW_MS, READER, WRITER, Served, served, token_files
from tests.store.made import found

ACK = "/v1/incidents/inc-f1/acknowledge"


def operations(api: Served) -> list[tuple[str, str]]:
    """Return every method and path of the application, with names put in."""
    access = Access(ApiSettings(), clock=lambda: 0.0, now_ms=lambda: NOW_MS)
    return [
        (method, re.sub(r"\{\w+\}", "f1", route.path))
        for route in application(api.parts, access).routes
        if hasattr(route, "methods") and hasattr(route, "path")
        for method in route.methods
    ]


OPEN = {"/healthz", "/readyz", "/metrics", "/static/page.css", "/favicon.ico", "/login"}


def test_without_a_token_nothing_is_read_or_changed(api: Served) -> None:
    api.record(found("f1", 10))
    with api.client() as nobody:
        for method, path in operations(api):
            answer = nobody.request(method, path, json={})
            if path in OPEN:
                assert answer.status_code not in {401, 403}, path
            elif method == "GET" and not path.startswith("/v1/"):
                assert answer.status_code == 303, path
                assert answer.headers["location"].startswith("/login?next=%2F")
            elif path == "/logout":
                assert answer.status_code == 422
            else:
                assert answer.status_code == 401, (method, path)
                assert answer.headers["www-authenticate"] == "Bearer"


def test_a_read_token_reads_and_changes_nothing(api: Served) -> None:
    api.record(found("f1", 10))
    with api.client(READER) as reader:
        for method, path in operations(api):
            if path in OPEN or path == "/logout":
                continue
            answer = reader.request(method, path, json={})
            expected = {403} if method != "GET" else {200, 303, 404}
            assert answer.status_code in expected, (method, path, answer.text)
    with api.client(WRITER) as writer:
        assert writer.get("/v1/incidents/inc-f1").json()["incident"]["version"] == 1
        assert writer.post(ACK, json={}).json()["acknowledged_by"] == "walt"


@pytest.mark.parametrize(
    "given",
    [
        f"Bearer {READER[:-1]}",
        f"Bearer {READER}x",
        "Bearer x",
        f"Basic {READER}",
        "Bearer \xff\xfe",
    ],
)
def test_a_wrong_token_is_nobody(api: Served, given: str) -> None:
    raw = {b"Authorization": given.encode("latin-1")}
    with api.client() as client:
        assert client.get("/v1/findings", headers=raw).status_code == 401


def test_tokens_are_read_again_and_a_broken_file_lets_nobody_in(tmp_path: Path) -> None:
    now_s = 0.0
    files = token_files(tmp_path)
    tokens = Tokens(ApiSettings(**files), clock=lambda: now_s)
    assert tokens.caller(WRITER) == Caller("walt", may_write=True)
    path = Path(files["write_tokens_file"])
    path.write_text("anna another-token-0123456789\n")
    assert tokens.caller(WRITER) is not None
    now_s = READ_AGAIN_S
    assert tokens.caller(WRITER) is None
    assert tokens.caller("another-token-0123456789") == Caller("anna", may_write=True)
    path.write_text("anna short\n")
    now_s = 2 * READ_AGAIN_S
    assert tokens.caller("another-token-0123456789") is None


@pytest.mark.parametrize(
    "line", ["justatoken0123456789abcdef", "anna short", "an/na 0123456789abcdef"]
)
def test_a_file_that_holds_no_tokens_is_refused_without_showing_them(
    tmp_path: Path, line: str
) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"{line}\n")
    path.chmod(0o600)
    with pytest.raises(SettingsError) as refused:
        Tokens(ApiSettings(read_tokens_file=str(path)), clock=lambda: 0.0)
    assert "entry 1" in str(refused.value)
    assert line.rsplit(maxsplit=1)[-1] not in str(refused.value)


def test_beyond_loopback_somebody_must_be_known() -> None:
    with pytest.raises(ValidationError, match="loopback"):
        ApiSettings(host="0.0.0.0")
    with pytest.raises(ValidationError, match="go together"):
        ApiSettings(proxy_user_header="X-User")
    with pytest.raises(ValidationError, match="neither an address nor a network"):
        ApiSettings(proxy_user_header="X-User", proxy_from=("proxy",))


def test_without_tokens_only_localhost_reads_and_nobody_writes(tmp_path: Path) -> None:
    with served(tmp_path, api={}) as api, api.client() as nobody:
        api.record(found("f1", 10))
        assert nobody.get("/v1/findings").status_code == 200
        assert "may read" in nobody.get("/incidents/inc-f1").text
        assert nobody.post(ACK, json={}).status_code == 401
        # A page of elsewhere whose name points to this machine.
        rebound = nobody.get("/v1/findings", headers={"Host": "evil.example"})
        assert rebound.status_code == 421
        assert nobody.get("/v1/findings", headers={"Authorization": "Bearer x"}).status_code == 401


def test_a_proxy_is_believed_only_from_its_address(tmp_path: Path) -> None:
    header = {"proxy_user_header": "X-Forwarded-User", "proxy_writers": ["ops-*"]}
    said = {"X-Forwarded-User": "ops-anna"}
    with served(tmp_path, api={**header, "proxy_from": ["127.0.0.0/8"]}) as api:
        api.record(found("f1", 10))
        with api.client() as client:
            assert client.get("/v1/findings").status_code == 401
            assert client.post(ACK, json={}, headers={"X-Forwarded-User": "bob"}).status_code == 403
            assert client.post(ACK, json={}, headers=said).json()["acknowledged_by"] == "ops-anna"
            cross = {**said, "Sec-Fetch-Site": "cross-site"}
            assert client.post(ACK, json={}, headers=cross).status_code == 403
    (tmp_path / "other").mkdir()
    elsewhere = {**header, "proxy_from": ["10.0.0.0/8"]}
    with served(tmp_path / "other", api=elsewhere) as api, api.client() as client:
        assert client.get("/v1/findings", headers=said).status_code == 401


@contextmanager
def signed_in(api: Served, token: str) -> Iterator[httpx.Client]:
    """Give a client with the cookie of a session."""
    with api.client() as client:
        answer = client.post("/login", data={"token": token, "next": "/incidents/inc-f1"})
        assert answer.status_code == 303
        assert answer.headers["location"] == "/incidents/inc-f1"
        said = answer.headers["set-cookie"]
        assert all(word in said for word in ("HttpOnly", "Secure", "SameSite=lax"))
        client.headers["Cookie"] = said.partition(";")[0]
        yield client


def form_token(page: str) -> str:
    """Return the token of the forms of a page."""
    held = re.search(r'name="form_token" value="([^"]+)"', page)
    assert held
    return held[1]


def test_a_session_reads_writes_by_its_forms_and_ends(api: Served) -> None:
    api.record(found("f1", 10))
    with signed_in(api, WRITER) as client:
        page = client.get("/incidents/inc-f1").text
        form = {"form_token": form_token(page), "reason": "looking"}
        at = "/incidents/inc-f1/acknowledge"
        assert client.post(at, data={**form, "form_token": "x"}).status_code == 403
        assert client.post(at, data={"reason": "no token"}).status_code == 422
        assert client.post(ACK, json={}).status_code == 401, "programs bring tokens"
        cross = {"Sec-Fetch-Site": "cross-site"}
        assert client.post(at, data=form, headers=cross).status_code == 403
        assert "taken by walt" not in client.get("/incidents/inc-f1").text
        assert client.post(at, data=form).status_code == 303
        assert "taken by walt" in client.get("/incidents/inc-f1").text
        out = client.post("/logout", data=form)
        assert f'{COOKIE}=""' in out.headers["set-cookie"]
    with signed_in(api, READER) as reader:
        stolen = reader.post(at, data=form)
        assert stolen.status_code == 403


@pytest.mark.parametrize(
    "next_page", ["https://evil.example/", "//evil.example", "/\\evil.example"]
)
def test_signing_in_leads_nowhere_else(api: Served, next_page: str) -> None:
    with api.client() as client:
        answer = client.post("/login", data={"token": READER, "next": next_page})
        assert answer.headers["location"] == "/incidents"
        wrong = client.post("/login", data={"token": "wrong-token-0123456789"})
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)


def test_a_cookie_cannot_be_forged_changed_or_kept() -> None:
    sessions, anna = Sessions(b"k" * 32), Caller("anna", may_write=True)
    cookie = sessions.cookie(anna, now_ms=NOW_MS)
    assert sessions.caller(cookie, now_ms=NOW_MS) == anna
    assert sessions.caller(cookie, now_ms=NOW_MS + SESSION_MS) is None
    assert Sessions(b"j" * 32).caller(cookie, now_ms=NOW_MS) is None
    for place in range(0, len(cookie), 7):
        other = "A" if cookie[place] != "A" else "B"
        changed = cookie[:place] + other + cookie[place + 1 :]
        assert sessions.caller(changed, now_ms=NOW_MS) is None
    for broken in ("", ".", "x", "é.é", cookie[:-4]):
        assert sessions.caller(broken, now_ms=NOW_MS) is None
    form = sessions.form_token(anna)
    assert sessions.is_form_token(form, anna)
    assert not sessions.is_form_token(form, Caller("bob", may_write=True))
    assert sessions.caller(f"{form}.{form}", now_ms=NOW_MS) is None


def test_large_bodies_are_not_read(api: Served) -> None:
    api.record(found("f1", 10))
    with api.client(WRITER) as client:
        large = b'{"reason": "' + b"x" * MAX_BODY_BYTES + b'"}'
        assert client.post(ACK, content=large).status_code == 413
        unstated = client.post(ACK, content=iter([b"{}"]))
        assert unstated.status_code == 411


def test_every_answer_forbids_scripts_frames_and_keeping(api: Served) -> None:
    with api.client(READER) as client:
        for path in ("/incidents", "/v1/incidents", "/v1/nothing", "/healthz"):
            headers = client.get(path).headers
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "script-src" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"
