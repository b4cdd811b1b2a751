"""Tenant rules: order, kinds, mapping, and patterns that cannot run away."""

import hashlib
import time
from typing import Any

import pytest
from pydantic import ValidationError

from ingest.safe_pattern import compile_safe
from ingest.sources.base import RawRequest
from ingest.tenancy import Tenancy, TenancySettings


def _tenant(*rules: dict[str, Any], request_id: str = "r", **identity: str) -> str | None:
    settings = TenancySettings.model_validate({"rules": rules})
    names = {name.replace("__", ":"): value for name, value in identity.items()}
    request = RawRequest(request_id=request_id, started_at_ms=0, identity=names)
    return Tenancy(settings).tenant(request)


def test_by_default_the_tenant_field_counts() -> None:
    tenancy = Tenancy(TenancySettings())
    request = RawRequest(request_id="r", started_at_ms=0, identity={"tenant": "acme"})
    assert tenancy.tenant(request) == "acme"
    assert tenancy.tenant(RawRequest(request_id="r", started_at_ms=0)) is None


def test_the_first_rule_that_matches_wins() -> None:
    rules = (
        {"kind": "field", "name": "user", "pattern": "tenant:(?P<tenant>.+)"},
        {"kind": "field", "name": "cache_salt", "tenants": {"s1": "one"}},
        {"kind": "static", "tenant": "rest"},
    )
    assert _tenant(*rules, user="tenant:acme", cache_salt="s1") == "acme"
    assert _tenant(*rules, user="someone", cache_salt="s1") == "one"
    assert _tenant(*rules, user="someone", cache_salt="s2") == "rest"
    assert _tenant(*rules) == "rest"


def test_a_header_rule_ignores_case() -> None:
    assert _tenant({"kind": "header", "name": "Tenant"}, header__tenant="acme") == "acme"
    assert _tenant({"kind": "header", "name": "tenant"}, tenant="acme") is None


@pytest.mark.parametrize(
    ("request_id", "tenant"),
    [
        ("chatcmpl-acme-r07-0000", "acme"),
        ("chatcmpl--r07", None),
        ("other", None),
        ("chatcmpl-" + "a" * 600 + "-x", None),
        ("", None),
    ],
)
def test_a_request_id_rule_takes_the_named_group(request_id: str, tenant: str | None) -> None:
    rule = {"kind": "request_id", "pattern": r"chatcmpl-(?P<tenant>[^-]*)-"}
    assert _tenant(rule, request_id=request_id) == tenant


def test_api_keys_are_compared_by_hash_and_never_kept() -> None:
    key = "sk-very-secret-key"
    digest = hashlib.sha256(key.encode()).hexdigest()
    listed = {"kind": "api_key", "tenants": {digest: "acme"}}
    assert _tenant(listed, api_key_hash=digest.upper()) == "acme"
    assert _tenant(listed, api_key_hash=f"sha256:{digest}") == "acme"
    assert _tenant(listed, api_key_hash="0" * 64) is None
    free = {"kind": "api_key"}
    assert _tenant(free, api_key_hash=digest) == f"key-{digest[:16]}"
    assert _tenant(free, api_key_hash=key) == f"key-{digest[:16]}"
    raw = {"kind": "api_key", "name": "header:authorization", "raw": True}
    assert _tenant(raw, header__authorization=f"Bearer {key}") == f"key-{digest[:16]}"
    assert _tenant(raw, header__authorization="\ud800") is not None


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?P<tenant>[^-]+)-.*",
        r"^(?P<tenant>[a-z0-9-]+)_[0-9a-f]+$",
        r"(?:cmpl|chatcmpl)-(?P<tenant>\w{1,32}?)-r\d{2}-\d{4}",
        r"(?P<tenant>[^.]++)\.[^.]++\.[^.]++\.[^.]++",
        r"(?P<tenant>[]\[]{2})",
    ],
)
def test_plain_patterns_are_accepted(pattern: str) -> None:
    compile_safe(pattern, group="tenant")


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?P<tenant>(a+)+)$",
        r"(?P<tenant>(?:a|aa)*)$",
        r"(?P<tenant>(?:a|a){1,99})$",
        r"(?P<tenant>.*).*.*x",
        r"(?P<tenant>[^-]+)-[^-]+-[^-]+-x",
        "(?P<tenant>" + "(?:ab|ab)" * 20 + ")",
        "(?P<tenant>" + "a?" * 40 + ")",
        r"(?P<tenant>a)(?=b)",
        r"(?P<tenant>a)(?<!b)",
        r"(?P<tenant>a)\1",
        r"(?P<tenant>a)(?P=tenant)",
        r"(?P<tenant>a)(?(tenant)b|c)",
        r"(?i)(?P<tenant>a)",
        r"(?P<tenant>a**)",
        r"(?P<tenant>[a",
        r"(?P<tenant>a",
        r"(?P<other>a)",
        "no group",
        "(?P<tenant>" + "a" * 300 + ")",
        r"(?P<tenant>a)\p{L}",
    ],
)
def test_patterns_that_could_run_away_or_are_malformed_are_refused_at_load(pattern: str) -> None:
    for rule in ({"kind": "field", "name": "x"}, {"kind": "request_id"}):
        with pytest.raises(ValidationError):
            TenancySettings.model_validate({"rules": [rule | {"pattern": pattern}]})


def test_the_worst_accepted_pattern_takes_milliseconds() -> None:
    pattern = compile_safe(r"(?P<tenant>\w*)\w*-", group="tenant")
    begin = time.perf_counter()
    assert pattern.match("a" * 512) is None
    assert time.perf_counter() - begin < 0.25


@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "nothing"},
        {"kind": "field", "name": ""},
        {"kind": "static"},
        {"kind": "static", "tenant": ""},
        {"kind": "request_id"},
        {"kind": "field", "unknown": 1},
    ],
)
def test_malformed_rules_are_errors(rule: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TenancySettings.model_validate({"rules": [rule]})
