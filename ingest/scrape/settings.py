"""Settings of what is asked of the engines: which endpoints, how often, with what patience."""

from typing import Annotated

from pydantic import Field, field_validator

from detector.addresses import base_address
from detector.settings import Positive, Section
from ingest.names import Name
from ingest.schema_records import EngineRole


class TargetSettings(Section):
    """One server of an engine: where it answers, and what it is called."""

    url: str = Field(description="Where the engine listens, such as http://127.0.0.1:8000.")
    engine: Name | None = Field(
        None, description="Name of the engine; unset: `sidecar.engine`, else host and port."
    )
    kv_pool: Name | None = Field(
        None, description="KV pool; unset: `sidecar.kv_pool`, else the engine."
    )
    kind: str = Field(
        "auto",
        pattern="^[a-z][a-z0-9_]{0,63}$",
        description="Mapping to read it by: vllm, sglang, a kind of `scrape.mapping_files`, or "
        "`auto`, which goes by the names of the metrics.",
    )
    role: EngineRole | None = Field(
        None, description="Role of the engine, where it does not tell it itself."
    )
    token_file: str | None = Field(
        None, description="File with the API key on its first line, sent as a bearer token."
    )
    ca_file: str | None = Field(
        None, description="PEM file of the authorities to trust; unset: those of the system."
    )
    probe_file: str | None = Field(
        None,
        description="What `bleedwatch probe --record` wrote of this engine: a metric tells "
        "whether it still runs that.",
    )

    @field_validator("url")
    @classmethod
    def _is_a_base(cls, value: str) -> str:
        """Refuse what is more than scheme, host and port: a user name may hide a secret."""
        return base_address(value)


class ScrapeSettings(Section):
    """Which engines are asked for their state, and how."""

    targets: tuple[TargetSettings, ...] = Field(
        (),
        max_length=64,
        description="Engines whose metrics and info endpoints are read; none: no runtime samples.",
    )
    interval_ms: Annotated[int, Field(ge=500)] = Field(
        5_000, description="How often each is asked. SGLang refreshes idle metrics every 30 s."
    )
    timeout_ms: Positive = Field(
        2_000, description="How long one answer may take, from connecting to its last byte."
    )
    max_body_bytes: Positive = Field(
        8 * 2**20,
        description="Largest answer; real ones have 40 to 90 KB for one rank.",
    )
    refresh_ms: Positive = Field(
        600_000,
        description="How often what changes only with a restart (version, limits) is asked again.",
    )
    mapping_files: tuple[str, ...] = Field(
        (),
        description="YAML files with mappings of other engines, or in place of those built in.",
    )
