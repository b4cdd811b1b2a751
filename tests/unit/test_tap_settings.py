"""The engine of a tap is a scheme, a host and a port: whatever else stands there is refused."""

import pytest
from pydantic import ValidationError

from ingest.tap.settings import TapSettings


@pytest.mark.parametrize(
    "url",
    [
        None,
        "http://127.0.0.1:8000",
        "http://127.0.0.1:8000/",
        "https://engine",
        "http://[::1]:8000",
    ],
)
def test_a_base_is_taken_as_it_is(url: str | None) -> None:
    assert TapSettings(engine_url=url).engine_url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8000",
        "ftp://engine",
        "http://",
        "http://engine:0",
        "http://engine:70000",
        "http://[::1",
        "http://engine/v1",
        "http://engine?model=a",
        "http://engine#a",
    ],
)
def test_what_is_no_base_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="a host and a port, and nothing else"):
        TapSettings(engine_url=url)


@pytest.mark.parametrize("url", ["http://user@engine", "http://user:word@engine", "http://@engine"])
def test_a_user_or_a_password_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="must not hold a user or a password"):
        TapSettings(engine_url=url)
