"""The root of all settings: one section for each concern."""

from pydantic import Field

from detector.settings import DetectionSettings, Section
from ingest.chat_template import ChatTemplateSettings
from ingest.sources.field_map import FieldMap
from ingest.tenancy import TenancySettings


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
