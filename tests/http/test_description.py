"""The description of the API is committed, and the API keeps to it whatever is asked."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    positive_data_acceptance,
)

from tests.http.describe import COMMITTED, description
from tests.http.kit import WRITER, Served, served
from tests.http.scene import play

schema = schemathesis.openapi.from_path(COMMITTED)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("described")) as api:
        play(api)
        yield api


def test_the_committed_description_is_that_of_the_code(scene: Served) -> None:
    assert COMMITTED.read_text(encoding="utf-8") == description(scene.parts), "make api-description"


@schema.parametrize()
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_is_asked_is_answered_as_described(
    scene: Served, case: "schemathesis.Case[Any]"
) -> None:
    """No fault of the server, no status, type or shape that is not described.

    A cursor and a span that no description can tell from good ones may be refused, and a path that
    has several methods names in Allow those of its first route.
    """
    case.call_and_validate(
        base_url=scene.url,
        headers={"Authorization": f"Bearer {WRITER}"},
        excluded_checks=[positive_data_acceptance, allow_header_conformance],
    )
