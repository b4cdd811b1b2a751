"""Fake engines of both kinds for a module, each with a tap before it."""

from collections.abc import Iterator

import pytest

from detector.sample.language import Language, load_language
from tests.fakes.http_engine import EngineOptions, HttpEngine, http_engine
from tests.tap.kit import Tapped, tapped

POOL_TOKENS = 8_192


@pytest.fixture(scope="session")
def language() -> Language:
    return load_language()


@pytest.fixture(scope="module")
def engines(language: Language) -> Iterator[dict[str, HttpEngine]]:
    with (
        http_engine(language, _options("vllm")) as vllm,
        http_engine(language, _options("sglang")) as sglang,
    ):
        yield {"vllm": vllm, "sglang": sglang}


@pytest.fixture(scope="module")
def taps(engines: dict[str, HttpEngine]) -> Iterator[dict[str, Tapped]]:
    with (
        tapped(engines["vllm"].url) as vllm,
        tapped(engines["sglang"].url, engine_kind="sglang") as sglang,
    ):
        yield {"vllm": vllm, "sglang": sglang}


def _options(kind: str) -> EngineOptions:
    return EngineOptions(kind=kind, pool_tokens=POOL_TOKENS, context_tokens=POOL_TOKENS)
