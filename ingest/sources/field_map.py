"""Maps the fields of other people's JSON logs to ours: our name -> dotted path in their object."""

from typing import Annotated, Final, Literal

from pydantic import Field

from detector.settings import Section

TimeUnit = Literal["s", "ms", "us", "ns", "rfc3339"]

Path = Annotated[str, Field(min_length=1, max_length=512)]


class FieldMap(Section):
    """Where each field of the documented form lies; a field not named keeps its own name.

    A path is split at dots; a number picks a list item ("choices.0.token_ids"). A key that itself
    holds dots is found as well ("gen_ai.request.model"): at every object the whole rest of the
    path is tried as one key first.
    """

    time: TimeUnit = Field(default="s", description="Unit or format of ts and ts_end.")
    request_id: Path = "request_id"
    ts: Path = "ts"
    ts_end: Path = "ts_end"
    node: Path = "node"
    engine: Path = "engine"
    kv_pool: Path = "kv_pool"
    tenant: Path = "tenant"
    model: Path = "model"
    session: Path = "session"
    account: Path = "account"
    end_user: Path = "end_user"
    parent_id: Path = "parent_id"
    api_key_hash: Path = "api_key_hash"
    cache_salt: Path = "cache_salt"
    extra_key: Path = "extra_key"
    headers: Path = "headers"
    finish_reason: Path = "finish_reason"
    status: Path = "status"
    reported_prompt_tokens: Path = "reported_prompt_tokens"
    gateway_cache_hit: Path = "gateway_cache_hit"
    prompt_ids: Path = "prompt_ids"
    response_ids: Path = "response_ids"
    identity: dict[str, Path] = Field(
        default_factory=dict,
        description="More values for tenant rules: name of the value -> path.",
    )

    @property
    def is_own_form(self) -> bool:
        """Whether every field keeps its own name, so that lines need no mapping."""
        return not self.identity and all(getattr(self, name) == name for name in _NAMES)


_NOT_PATHS: Final = frozenset({"time", "identity"})
_NAMES: Final = tuple(name for name in FieldMap.model_fields if name not in _NOT_PATHS)


def mapped_fields(record: object, fields: FieldMap) -> dict[str, object]:
    """Return our fields found in `record`; what is absent or null is left out."""
    found = {name: _at(record, getattr(fields, name)) for name in _NAMES}
    identity = {
        name: value if isinstance(value, str) else str(value)
        for name, path in fields.identity.items()
        if isinstance(value := _at(record, path), str | int) and _short(value)
    }
    found["identity"] = identity or None
    return {name: value for name, value in found.items() if value is not None}


def _short(value: str | int) -> bool:
    """Tell whether the number can be written: int to str refuses more than 4,300 digits."""
    return isinstance(value, str) or value.bit_length() <= 64


def _at(record: object, path: str) -> object:
    while True:
        if isinstance(record, dict):
            if path in record:
                return record[path]
            key, dot, path = path.partition(".")
            record = record.get(key)
        elif isinstance(record, list):
            key, dot, path = path.partition(".")
            record = record[int(key)] if key.isdecimal() and int(key) < len(record) else None
        else:
            return None
        if not dot:
            return record
