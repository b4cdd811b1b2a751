"""What an engine calls the quantities of a runtime sample: data, one YAML file for each engine."""

from importlib import resources
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
import yaml
from msgspec import Meta

from detector.errors import SettingsError
from detector.yaml_text import plain_values
from ingest.schema_records import EngineRole, Word

FORM: Final = 1
"""Version of the form of these files; another one is refused."""

MAX_FILE_BYTES: Final = 256 * 1024
"""A mapping has two kilobytes; more is the wrong file."""

BUILT_IN: Final = ("vllm", "sglang")

Number = Literal[
    "pool_tokens",
    "configured_pool_tokens",
    "pool_blocks",
    "block_tokens",
    "pool_usage_ratio",
    "used_tokens",
    "evictable_tokens",
    "held_tokens",
    "running_tokens",
    "running_requests",
    "queued_requests",
    "context_tokens",
    "max_input_tokens",
]
"""Quantities that are numbers. `held_tokens` are kept on purpose for sessions, `running_tokens` are
those of running requests; both explain used tokens."""

DocumentValue = Number | Literal["engine_version", "role"]

Counter = Literal["clear_failures", "metadata_mismatches", "transfer_failures"]

MetricName = Annotated[str, Meta(pattern="^[a-zA-Z_:][a-zA-Z0-9_:]*$", max_length=200)]
Names = Annotated[tuple[MetricName, ...], Meta(max_length=16)]
EndpointPath = Annotated[str, Meta(pattern="^/[A-Za-z0-9/_.-]*$", max_length=200)]
Dotted = Annotated[str, Meta(min_length=1, max_length=200)]

_NEVER: Final = ("/health", "/health_generate")
"""Endpoints that run a generation in SGLang: a mapping that names them is refused."""


class NumberSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a number is: the highest of several metrics, else the first of `names` that is there.

    With `label` the number is the text of that label, as info metrics have it.
    """

    names: Names = ()
    highest_of: Names = ()
    label: str | None = None


class CounterTerm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One summand of a counter: the first of `names` that is there, where the labels are such."""

    names: Annotated[Names, Meta(min_length=1)]
    where: dict[str, tuple[str, ...]] = {}


class RankValues(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Values of each data-parallel rank in a list of a document; those of `busy` must be zero."""

    list: Dotted
    rank: Dotted
    values: dict[DocumentValue, Dotted]
    busy: tuple[Dotted, ...] = ()


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A JSON endpoint: the first of `paths` that there is, asked in each scrape or at the start.

    `identifies` is a field whose presence shows that the engine is of this kind.
    """

    paths: Annotated[tuple[EndpointPath, ...], Meta(min_length=1, max_length=8)]
    when: Literal["start", "scrape"]
    values: dict[DocumentValue, Dotted] = {}
    ranks: RankValues | None = None
    identifies: Dotted | None = None


class Mapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that must be known of one kind of engine to make runtime samples of it."""

    mapping: Literal[1]
    engine_kind: Word
    metrics_path: EndpointPath = "/metrics"
    prefixes: Annotated[tuple[str, ...], Meta(min_length=1)]
    rank_label: str | None = None
    replica_labels: tuple[str, ...] = ()
    """Labels of series that tell the same as others of their rank: the lowest one counts."""
    reserved_blocks: Annotated[int, Meta(ge=0)] = 0
    """Blocks of the pool that are never given out."""
    numbers: dict[Number, NumberSource] = {}
    busy: Names = ()
    connector_prefixes: tuple[str, ...] = ()
    unreleased: Literal["used_at_idle", "unknown"] = "unknown"
    """`used_at_idle`: at idle, nothing but what was not released is used; cached does not count."""
    counters: dict[Counter, tuple[CounterTerm, ...]] = {}
    restarts: Names = ()
    documents: tuple[Document, ...] = ()
    roles: dict[str, EngineRole] = {}

    def metric_names(self) -> frozenset[str]:
        """Return every metric that is read."""
        sources = self.numbers.values()
        terms = (term for terms in self.counters.values() for term in terms)
        return frozenset(
            [
                *(name for source in sources for name in (*source.names, *source.highest_of)),
                *(name for term in terms for name in term.names),
                *self.busy,
                *self.restarts,
            ]
        )


def load_mappings(files: tuple[str, ...] = ()) -> dict[str, Mapping]:
    """Return the mappings by kind of engine; those of `files` replace built-in ones.

    Raises SettingsError for a file that cannot be read or is not of this form.
    """
    folder = resources.files("ingest.scrape")
    texts = {f"{kind}.yaml": folder.joinpath(f"{kind}.yaml").read_text() for kind in BUILT_IN}
    texts |= {file: _text(file) for file in files}
    mappings = [parse_mapping(text, where=name) for name, text in texts.items()]
    return {mapping.engine_kind: mapping for mapping in mappings}


def parse_mapping(text: str, *, where: str) -> Mapping:
    """Return the mapping that a text holds. Raises SettingsError naming the part at fault."""
    try:
        mapping = msgspec.convert(plain_values(text), Mapping)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SettingsError("not valid YAML", where=f"{where}:{line}") from None
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise SettingsError(
            f"not a mapping of metrics: {error}",
            where=where,
            hint="docs/runtime-metrics.md describes the form",
        ) from None
    paths = [mapping.metrics_path, *(path for one in mapping.documents for path in one.paths)]
    if any(path.rstrip("/") in _NEVER for path in paths):
        raise SettingsError(
            "a health endpoint may run a generation on every call",
            where=where,
            hint="use an endpoint that only tells its state, such as /v1/loads",
        )
    return mapping


def _text(file: str) -> str:
    try:
        with Path(file).open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise SettingsError("larger than 256 KiB: not a mapping", where=file)
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise SettingsError(
            f"the mapping cannot be read: {reason.lower()}",
            where=file,
            hint="check scrape.mapping_files",
        ) from None
