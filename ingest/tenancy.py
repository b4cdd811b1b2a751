"""Who a request belongs to: tenant rules in order, the first that matches wins.

Engines never log a tenant by themselves; it is found in a field, a header, a request id prefix or
an API key's hash that something upstream put there.
"""

import hashlib
import re
from typing import Annotated, Final, Literal

from pydantic import Field, field_validator

from detector.settings import Section
from ingest.limits import MAX_TEXT_CHARS
from ingest.names import Name
from ingest.safe_pattern import compile_safe
from ingest.sources.base import RawRequest

_GROUP: Final = "tenant"
_HASH_TENANT_CHARS: Final = 16  # 64 bits of SHA-256: unique among any number of API keys

_DIGEST: Final = re.compile("[0-9a-f]{32,128}")  # MD5 to SHA-512; anything else may be a raw key


class _ValueRule(Section):
    """A rule that reads one text value and turns it into a tenant."""

    pattern: str | None = Field(
        default=None,
        description="Regular expression with a group (?P<tenant>...), matched from the start of "
        "the value; without it the whole value is the tenant.",
    )
    tenants: dict[str, Name] = Field(
        default_factory=dict,
        description="Value -> tenant. When given, a value that is not listed does not match.",
    )

    @field_validator("pattern")
    @classmethod
    def _is_safe(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            compile_safe(pattern, group=_GROUP)
        return pattern


class FieldRule(_ValueRule):
    """The tenant stands in a named field of the log: tenant, user, cache_salt, session_id..."""

    kind: Literal["field"] = "field"
    name: Name = "tenant"


class HeaderRule(_ValueRule):
    """The tenant stands in a request header that the log holds; header names ignore case."""

    kind: Literal["header"]
    name: Name


class RequestIdRule(_ValueRule):
    """The tenant is part of the request id, as in acme.6f1c... or acme-r07-0000."""

    kind: Literal["request_id"]
    pattern: str | None = Field(description="Regular expression with a group (?P<tenant>...).")


class ApiKeyRule(Section):
    """The tenant follows from the API key's hash; a raw key is hashed at once and never kept."""

    kind: Literal["api_key"]
    name: Name = Field(
        default="api_key_hash", description="Where it stands, e.g. header:authorization."
    )
    raw: bool = Field(
        default=False,
        description="The value is the key itself: use its SHA-256. Implied when it is no digest.",
    )
    tenants: dict[str, Name] = Field(
        default_factory=dict,
        description="Hash -> tenant. When empty, the tenant is key- and 16 digits of the hash.",
    )


class StaticRule(Section):
    """Everything belongs to one tenant: an engine that serves one customer."""

    kind: Literal["static"]
    tenant: Name


Rule = Annotated[
    FieldRule | HeaderRule | RequestIdRule | ApiKeyRule | StaticRule, Field(discriminator="kind")
]


class TenancySettings(Section):
    """How requests are assigned to tenants."""

    rules: tuple[Rule, ...] = Field(
        default=(FieldRule(),),
        max_length=64,
        description="Tried in order, the first that matches wins; a request that no rule matches "
        "is dropped and counted as unmapped.",
    )


class Tenancy:
    """Applies the rules of one deployment. Values longer than 512 characters match no rule."""

    def __init__(self, settings: TenancySettings) -> None:
        self._rules = settings.rules
        self._patterns = {
            rule.pattern: compile_safe(rule.pattern, group=_GROUP)
            for rule in settings.rules
            if isinstance(rule, _ValueRule) and rule.pattern is not None
        }

    def tenant(self, request: RawRequest) -> str | None:
        """Return the tenant by the first matching rule, None when no rule matches."""
        for rule in self._rules:
            tenant = self._apply(rule, request)
            if tenant:
                return tenant
        return None

    def _apply(
        self,
        rule: FieldRule | HeaderRule | RequestIdRule | ApiKeyRule | StaticRule,
        request: RawRequest,
    ) -> str | None:
        if isinstance(rule, StaticRule):
            return rule.tenant
        if isinstance(rule, RequestIdRule):
            value: str | None = request.request_id
        else:
            prefix = "header:" if isinstance(rule, HeaderRule) else ""
            value = request.identity.get(prefix + rule.name.lower())
        if not value or len(value) > MAX_TEXT_CHARS:
            return None
        return _by_key(rule, value) if isinstance(rule, ApiKeyRule) else self._by_value(rule, value)

    def _by_value(self, rule: _ValueRule, value: str) -> str | None:
        if rule.pattern is not None:
            match = self._patterns[rule.pattern].match(value)
            if match is None or not match[_GROUP]:
                return None
            value = match[_GROUP]
        return rule.tenants.get(value) if rule.tenants else value


def _by_key(rule: ApiKeyRule, value: str) -> str | None:
    digest = value.removeprefix("sha256:").lower()
    if rule.raw or not _DIGEST.fullmatch(digest):
        key = value.removeprefix("Bearer ").strip()
        digest = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
    if rule.tenants:
        return rule.tenants.get(digest)
    return f"key-{digest[:_HASH_TENANT_CHARS]}"
