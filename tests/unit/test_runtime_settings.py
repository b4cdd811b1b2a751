"""The settings of the runtime rules: what begins a state must not lie below what ends it."""

import pytest
from pydantic import ValidationError

from detector.runtime.settings import RuntimeSettings


def test_pressure_must_not_end_above_where_it_begins() -> None:
    assert RuntimeSettings(pool_usage=0.8, pool_usage_clear=0.8).pool_usage_clear == 0.8
    with pytest.raises(ValidationError, match="pool_usage_clear"):
        RuntimeSettings(pool_usage=0.8, pool_usage_clear=0.81)


@pytest.mark.parametrize("name", ["pool_usage", "unreleased_share", "usage_share"])
def test_a_share_is_above_zero_and_at_most_one(name: str) -> None:
    for value in (0, 1.01):
        with pytest.raises(ValidationError, match=name):
            RuntimeSettings.model_validate({name: value})
