"""A secret that stands where the path of its file belongs is in no message."""

from collections.abc import Callable

import pytest

from detector.cli.api_client import ApiClient
from detector.config.catalog import dotted, every_setting
from detector.config.root import Settings
from detector.errors import BleedwatchError
from exporters.http.settings import ApiSettings, ClientSettings
from exporters.http.tokens import Tokens
from exporters.store.database import open_store
from exporters.store.settings import StoreSettings
from ingest.kafka_credentials import load_credentials
from ingest.kafka_settings import SecuritySettings
from ingest.push.token import read_token

SECRET = "4054da7dd0729213cbe5705d59e45de5"

STORE = "postgresql://me@127.0.0.1:1/db"
KAFKA = SecuritySettings(protocol="SASL_SSL", username="me", password_file=SECRET)

READERS: dict[str, Callable[[], object]] = {
    "kafka.security.password_file": lambda: load_credentials(KAFKA),
    "http.token_file": lambda: read_token(SECRET, where="http.token_file"),
    "push.token_file": lambda: read_token(SECRET),
    "store.password_file": lambda: open_store(StoreSettings(url=STORE, password_file=SECRET)),
    "client.token_file": lambda: ApiClient(ClientSettings(token_file=SECRET)),
    "api.read_tokens_file": lambda: _tokens(ApiSettings(read_tokens_file=SECRET)),
    "api.write_tokens_file": lambda: _tokens(ApiSettings(write_tokens_file=SECRET)),
}


def _tokens(settings: ApiSettings) -> None:
    Tokens(settings, clock=lambda: 0.0)


def test_every_such_setting_is_tried() -> None:
    ends = ("token_file", "tokens_file", "password_file")
    named = {dotted(setting.path) for setting in every_setting(Settings)}
    assert {name for name in named if name.endswith(ends)} == READERS.keys()


@pytest.mark.parametrize("setting", READERS)
def test_the_message_names_the_setting_and_not_the_secret(
    setting: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(BleedwatchError) as error:
        READERS[setting]()
    told = f"{error.value.where} {error.value.what} {error.value.hint} {caplog.text}"
    assert setting in told
    assert SECRET not in told
