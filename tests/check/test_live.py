"""A running engine is checked by what it answers: its pool, its limits, its flags."""

import json
from pathlib import Path

import pytest

from detector.check.engine import Engine
from detector.check.gather import Given, gather
from detector.check.plan import run
from detector.check.verdict import Said, Verdict
from detector.sample.language import Language, load_language
from tests.check.corpus_files import MODELS
from tests.e2e.program import Capture, call
from tests.fakes.http_engine import EngineOptions, http_engine
from tests.unit.engine_server import engine_server, sglang_page, vllm_page


@pytest.fixture(scope="module")
def language() -> Language:
    return load_language()


def checked(*urls: str, **more: str) -> tuple[list[Engine], dict[str, Said]]:
    """Return the engines, and what each check says of the last of them that it is about."""
    scope = gather(Given(urls=urls, models=[more["model"]] if "model" in more else ()))
    return list(scope.engines), {one.check: one.said for one in run(scope)}


@pytest.mark.parametrize("kind", ["sglang", "vllm"])
def test_an_engine_whose_pool_is_too_small(language: Language, kind: str) -> None:
    options = EngineOptions(kind=kind, pool_tokens=4096, context_tokens=8192)
    with http_engine(language, options) as engine:
        (asked,), said = checked(engine.url)
    assert (asked.kind, asked.version) == (kind, {"sglang": "0.5.23", "vllm": "0.33.0"}[kind])
    assert said["pool-covers-context"].verdict is Verdict.FAIL
    assert "pool 4,096 tokens (the engine says so), context 8,192" in (
        said["pool-covers-context"].found
    )


def info(**more: object) -> str:
    """Return what SGLang answers at /server_info, with some flags as they are by default."""
    told = {"version": "0.5.22", "context_length": 8192, "max_total_tokens": None}
    return json.dumps(told | {"log_requests": False, "page_size": 1, "host": "127.0.0.1"} | more)


def test_a_running_pair_is_compared_by_the_limits_it_tells() -> None:
    page = sglang_page(max_total_num_tokens=6000, context_len=8192, num_running_reqs=0)
    roomy = sglang_page(max_total_num_tokens=9000, context_len=8192, num_running_reqs=0)
    prefill = info(disaggregation_mode="prefill", max_req_input_len=5994)
    decode = info(disaggregation_mode="decode", max_req_input_len=8186)
    with (
        engine_server(metrics=page, server_info=prefill) as one,
        engine_server(metrics=roomy, server_info=decode) as two,
    ):
        engines, said = checked(one.url, two.url)
    assert [engine.role for engine in engines] == ["prefill", "decode"]
    assert said["input-limits"].verdict is Verdict.FAIL
    assert "prefill rejects from 5,994 tokens on (the engine says so)" in said["input-limits"].found
    assert said["deferred-release"].verdict is Verdict.PASS


def test_flags_that_the_engine_tells_are_read() -> None:
    page = sglang_page(max_total_num_tokens=9000, context_len=8192, num_running_reqs=0)
    told = info(
        disaggregation_mode="null", enable_lmcache=True, disable_radix_cache=False, page_size=64,
        max_running_requests=8,
    )  # fmt: skip
    with engine_server(metrics=page, server_info=told) as server:
        _, said = checked(server.url)
    assert said["prefix-cache"].found == "--enable-lmcache"
    assert "pages of 64 (--page-size 64)" in said["page-size"].found
    assert said["all-flags"].verdict is Verdict.PASS
    assert said["endpoints"].verdict is Verdict.PASS


def test_vllm_does_not_tell_its_flags_which_is_said() -> None:
    with engine_server(metrics=vllm_page(), version='{"version": "0.33.0"}') as server:
        _, said = checked(server.url, model=str(MODELS / "small.json"))
    assert said["all-flags"].verdict is Verdict.UNKNOWN
    assert "pool 1,600 tokens" in said["pool-covers-context"].found


def test_keys_and_authorities_that_cannot_be_used(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    options = ("--url", "https://127.0.0.1:1", "--ca-file", str(tmp_path / "ca.pem"))
    code, _, err = call(capsys, "check", "config", *options)
    assert (code, "the authorities cannot be read" in err) == (2, True)


def test_a_key_is_sent_and_never_shown(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("very-secret\n")
    file.chmod(0o600)
    with engine_server(metrics=vllm_page()) as server:
        _, out, err = call(
            capsys, "check", "config", "--url", server.url, "--token-file", file, "-o", "json"
        )
        assert server.headers[0]["Authorization"] == "Bearer very-secret"
    assert "very-secret" not in out + err
