"""What is no name is refused in every group of settings that names an engine or a KV pool."""

import pytest
from pydantic import ValidationError

from detector.settings import Section
from ingest.kv_events.settings import KvEventSource
from ingest.scrape.settings import TargetSettings
from ingest.sidecar_settings import SidecarSettings

GROUPS: list[tuple[type[Section], dict[str, str]]] = [
    (SidecarSettings, {}),
    (TargetSettings, {"url": "http://127.0.0.1:8000"}),
    (KvEventSource, {"endpoint": "tcp://127.0.0.1:5557", "engine": "e"}),
]


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[2J", "a" * 513, "a\u202eb"])
@pytest.mark.parametrize("setting", ["engine", "kv_pool"])
@pytest.mark.parametrize(("group", "others"), GROUPS)
def test_no_group_takes_it(
    group: type[Section], others: dict[str, str], setting: str, name: str
) -> None:
    group.model_validate({**others, setting: "engine 1"})
    with pytest.raises(ValidationError, match=setting):
        group.model_validate({**others, setting: name})
