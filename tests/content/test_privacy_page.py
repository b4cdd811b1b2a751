"""docs/privacy.md names whatever keeps something: each topic and table, and how long by default."""

import re

import pytest

from exporters.store.settings import StoreRetentionSettings
from exporters.store.tables import metadata
from ingest.kafka_settings import RetentionSettings
from ingest.topics import topic_names
from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
TABLE = PAGE[PAGE.index("| where |") : PAGE.index("## The secret")]

WORDS = {"an hour": 3_600_000, "a day": 86_400_000, "two days": 172_800_000,
         "a week": 604_800_000, "30 days": 2_592_000_000, "a year": 31_536_000_000}  # fmt: skip

KEPT = {
    f"{group}.{name}": default
    for group, settings in (
        ("kafka.retention", RetentionSettings()),
        ("store.retention", StoreRetentionSettings()),
    )
    for name, default in settings.model_dump().items()
}


@pytest.mark.parametrize("name", [*topic_names(""), *metadata.tables])
def test_every_topic_and_table_is_named(name: str) -> None:
    assert f"`{name.removeprefix('.')}`" in TABLE


def test_how_long_things_are_kept_is_what_the_settings_say() -> None:
    told = re.findall(r"`((?:kafka|store)\.retention\.\w+)`, (.+?)(?:,| \|)", TABLE)
    assert {name: WORDS[words] for name, words in told} == KEPT
