"""The root of all settings: one section for each concern."""

import re

from pydantic import Field, field_validator

from detector.settings import DetectionSettings, Section
from ingest.chat_template import ChatTemplateSettings
from ingest.sources.field_map import FieldMap
from ingest.tenancy import TenancySettings

_SECRET = re.compile(r"\s*[0-9a-fA-F]{64}\s*")


class SourceSettings(Section):
    """How the readers understand their input."""

    jsonl: FieldMap = FieldMap()


class Settings(Section):
    """Everything a configuration file may set."""

    key_file: str | None = Field(
        None,
        description="File with the 32-byte deployment secret, as `bleedwatch key new` writes it.",
    )
    detection: DetectionSettings = DetectionSettings()
    tenancy: TenancySettings = TenancySettings()
    template: ChatTemplateSettings = ChatTemplateSettings()
    sources: SourceSettings = SourceSettings()

    @field_validator("key_file")
    @classmethod
    def _is_a_path(cls, value: str | None) -> str | None:
        """Refuse the secret itself, before a message or a table shows it as a path."""
        if value is not None and _SECRET.fullmatch(value):
            raise ValueError("must be the path of the key file, not the secret")
        return value
