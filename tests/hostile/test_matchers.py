"""Patterns of names with many wildcards, against long names: they answer at once."""

import time
from typing import Any

import pytest

from exporters.outputs.settings import Matchers
from exporters.sending.matching import wants
from tests.alerts.kit import notification

SECONDS = 0.5

LONG = "a" * 512
"""The longest name that a record may have."""


@pytest.mark.parametrize(
    "pattern", ["*a" * 127 + "b", "*a?" * 85 + "b", "[a]*" * 63 + "b", "*" * 255 + "b", "[" * 256]
)
def test_no_pattern_of_names_runs_away(pattern: str) -> None:
    when: dict[str, Any] = {"tenants": [pattern], "kv_pools": [pattern]}
    told = notification(tenants=(LONG, LONG), kv_pools=(LONG,))
    began = time.process_time()
    assert not wants(Matchers.model_validate(when), told)
    assert time.process_time() - began < SECONDS


def test_a_long_name_is_still_matched() -> None:
    told = notification(tenants=(LONG + "b",))
    assert wants(Matchers.model_validate({"tenants": ["*a" * 20 + "b"]}), told)
